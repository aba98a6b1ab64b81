import { OUTCOME_NUMBERS, OUTCOMES, type Outcome } from './outcomes.js';

/**
 * What is known of a request when it is over. Times are milliseconds of the monotonic clock, NaN where there was none;
 * counts that the server did not tell are NaN.
 */
export interface RequestRecord {
  request: number;
  sample: number;
  /** Turn of its conversation, from 0. */
  turn: number;
  worker: number;
  outcome: Outcome;
  /** HTTP status; 0 without an answer. */
  status: number;
  /** 1, and one more for each repetition after a 429. */
  attempts: number;
  /** When the schedule wanted it; in a closed loop, when its slot became free. */
  scheduledMs: number;
  /** Right before its first byte was handed to the connection (of the last attempt). */
  sentMs: number;
  /** First and last piece of the answer with text; of an answer that is not streamed, its end. */
  firstMs: number;
  lastMs: number;
  endMs: number;
  promptTokens: number;
  /** Tokens of the answer as the server counts them. */
  completionTokens: number;
  /** Prompt tokens that were found in a prefix cache, as the server says. */
  cachedTokens: number;
  /** Pieces of the answer that had text. */
  pieces: number;
  /** The answer came as an event stream. */
  streamed: boolean;
}

/** A record to be filled. */
export function emptyRecord(worker: number): RequestRecord {
  return {
    request: 0,
    sample: 0,
    turn: 0,
    worker,
    outcome: 'not_sent',
    status: 0,
    attempts: 0,
    scheduledMs: Number.NaN,
    sentMs: Number.NaN,
    firstMs: Number.NaN,
    lastMs: Number.NaN,
    endMs: Number.NaN,
    promptTokens: Number.NaN,
    completionTokens: Number.NaN,
    cachedTokens: Number.NaN,
    pieces: 0,
    streamed: false,
  };
}

const FIELDS = [
  'request',
  'sample',
  'turn',
  'worker',
  'outcome',
  'status',
  'attempts',
  'scheduledMs',
  'sentMs',
  'firstMs',
  'lastMs',
  'endMs',
  'promptTokens',
  'completionTokens',
  'cachedTokens',
  'pieces',
  'streamed',
] as const satisfies (keyof RequestRecord)[];

/** Numbers of a record in a result frame. */
export const RECORD_LENGTH = FIELDS.length;

/** Records one after the other as numbers: what crosses between processes, and what a run keeps. */
export class RecordList {
  #values: Float64Array;
  #length = 0;

  constructor(capacity = 64) {
    this.#values = new Float64Array(capacity * RECORD_LENGTH);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a record, in the order of FIELDS, which a test holds it to. */
  push(record: RequestRecord): void {
    this.#grow(1);
    const values = this.#values;
    let at = this.#length * RECORD_LENGTH;
    values[at++] = record.request;
    values[at++] = record.sample;
    values[at++] = record.turn;
    values[at++] = record.worker;
    values[at++] = OUTCOME_NUMBERS[record.outcome];
    values[at++] = record.status;
    values[at++] = record.attempts;
    values[at++] = record.scheduledMs;
    values[at++] = record.sentMs;
    values[at++] = record.firstMs;
    values[at++] = record.lastMs;
    values[at++] = record.endMs;
    values[at++] = record.promptTokens;
    values[at++] = record.completionTokens;
    values[at++] = record.cachedTokens;
    values[at++] = record.pieces;
    values[at] = record.streamed ? 1 : 0;
    this.#length++;
  }

  /** `values` as `take` gave them. */
  append(values: Float64Array): void {
    const count = values.length / RECORD_LENGTH;
    this.#grow(count);
    this.#values.set(values, this.#length * RECORD_LENGTH);
    this.#length += count;
  }

  /** A copy of the numbers; the list is empty afterwards. */
  take(): Float64Array {
    const values = this.#values.slice(0, this.#length * RECORD_LENGTH);
    this.#length = 0;
    return values;
  }

  at(index: number): RequestRecord {
    return recordOf(this.#values, index);
  }

  *[Symbol.iterator](): Generator<RequestRecord> {
    for (let i = 0; i < this.#length; i++) yield this.at(i);
  }

  #grow(count: number): void {
    const needed = (this.#length + count) * RECORD_LENGTH;
    if (needed <= this.#values.length) return;
    const larger = new Float64Array(Math.max(needed, 2 * this.#values.length));
    larger.set(this.#values.subarray(0, this.#length * RECORD_LENGTH));
    this.#values = larger;
  }
}

/** The record at this place of a result frame's numbers. In the order of FIELDS, which a test holds it to. */
export function recordOf(values: Float64Array, index: number): RequestRecord {
  let at = index * RECORD_LENGTH;
  return {
    request: values[at++]!,
    sample: values[at++]!,
    turn: values[at++]!,
    worker: values[at++]!,
    outcome: OUTCOMES[values[at++]!]!,
    status: values[at++]!,
    attempts: values[at++]!,
    scheduledMs: values[at++]!,
    sentMs: values[at++]!,
    firstMs: values[at++]!,
    lastMs: values[at++]!,
    endMs: values[at++]!,
    promptTokens: values[at++]!,
    completionTokens: values[at++]!,
    cachedTokens: values[at++]!,
    pieces: values[at++]!,
    streamed: values[at]! === 1,
  };
}
