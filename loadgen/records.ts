import { OUTCOME_NUMBERS, OUTCOMES, type Outcome } from './outcomes.js';

/**
 * Record of a finished request. Times are milliseconds of the monotonic clock, NaN where there is none;
 * counts that the server did not report are NaN.
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
  /** Number of attempts: 1, and one more for each repetition after a 429. */
  attempts: number;
  /** Scheduled time; in a closed loop, the time when its slot became free. */
  scheduledMs: number;
  /** Time right before its first byte was handed to the connection (of the last attempt). */
  sentMs: number;
  /** Time of the first piece of the answer with text, and of the last; of an answer that is not streamed, its end. */
  firstMs: number;
  lastMs: number;
  endMs: number;
  promptTokens: number;
  /** Number of the answer's tokens by the server's count. */
  completionTokens: number;
  /** Number of prompt tokens found in a prefix cache, by the server's count. */
  cachedTokens: number;
  /** Number of the answer's pieces with text. */
  pieces: number;
  /** True where the answer came as an event stream. */
  streamed: boolean;
}

/** A new record with empty fields. */
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

/** Count of numbers in a result frame for one record. */
export const RECORD_LENGTH = FIELDS.length;

/** Records one after the other as numbers, as they cross between processes and as a run keeps them. */
export class RecordList {
  #values: Float64Array;
  #length = 0;

  constructor(capacity = 64) {
    this.#values = new Float64Array(capacity * RECORD_LENGTH);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a record, in the order of FIELDS, as a test checks. */
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

  /** Appends records. @param values numbers that `take` returned */
  append(values: Float64Array): void {
    const count = values.length / RECORD_LENGTH;
    this.#grow(count);
    this.#values.set(values, this.#length * RECORD_LENGTH);
    this.#length += count;
  }

  /** Returns a copy of the numbers, and empties the list. */
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

/** The record at an index of a result frame's numbers, in the order of FIELDS, as a test checks. */
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
