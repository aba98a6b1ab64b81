import type { TokenMasks } from '../decoding/sampling-batch.js';
import { type GuideReply, type GuideThread, wordsOfMask } from '../guided/guide-messages.js';
import type { LlmRequest } from '../llm-request.js';
import type { RequestRows, RowFailures } from './logits-stage.js';

/** How long the loop waits for masks before it holds the thread for dead; it limits itself to less for each row. */
const STUCK_MS = 20_000;
/** How long the loop sleeps at a time where all there is to do is to wait for guides. */
const WAIT_MS = 5;

/** The masks of a call's rows, in memory that the thread writes. Made when a call first has a guided row. */
export class GuideMasks {
  /** Rows of a call at most. */
  readonly #maxRows: number;
  #masks: (TokenMasks & { memory: SharedArrayBuffer }) | null = null;
  /** What the thread calls the step that they were last asked for. */
  step = -1;

  constructor(maxRows: number) {
    this.#maxRows = maxRows;
  }

  of(vocabSize: number): TokenMasks & { memory: SharedArrayBuffer } {
    if (this.#masks === null) {
      const memory = new SharedArrayBuffer(4 * wordsOfMask(vocabSize) * this.#maxRows);
      this.#masks = { memory, words: new Int32Array(memory), maskOfRow: new Int32Array(this.#maxRows) };
    }
    return this.#masks;
  }
}

/** A request with a guide. */
interface Guided {
  readonly request: LlmRequest;
  /** What the thread calls its sequences, in their order. */
  readonly numbers: readonly number[];
  /** Tokens of each that the thread knows. */
  readonly numKnown: number[];
  /** Sequences whose guide is still being read. */
  numOpening: number;
  /** Why it cannot be guided (any more). */
  failure: { error: string; isInvalid: boolean } | null;
}

/**
 * What the loop has of guided decoding: it asks for the masks of a step when its tokens are known, goes on with the step's
 * forward, and waits for them only before it samples.
 *
 *   loop     pack, ask | forward ............ | wait | sample | update | pack, ask | forward ...
 *   thread             | mask mask mask mask  |                        | mask mask
 *
 * A request is not scheduled before its guide has been read, so nobody waits for that. If the thread dies, those that it had
 * fail; the next request with a guide starts another one.
 */
export class GuidedDecoding {
  readonly #thread: GuideThread | null;
  readonly #vocabSize: number;
  readonly #guided = new Map<LlmRequest, Guided>();
  readonly #bySequence = new Map<number, Guided>();
  #nextSequence = 0;
  #step = 0;
  /** The step whose masks have come last. */
  #masked = -1;
  readonly #rowFailures = new Map<number, string>();

  constructor(thread: GuideThread | null, vocabSize: number) {
    this.#thread = thread;
    this.#vocabSize = vocabSize;
  }

  /** Requests may have guides. */
  get isAvailable(): boolean {
    return this.#thread !== null;
  }

  /** Takes a request on, if it has a guide. */
  open(request: LlmRequest): void {
    const { guide, endingTokens } = request.spec;
    const thread = this.#thread;
    if (guide === null || thread === null) return;
    if (thread.isDead) {
      this.#failAll();
      thread.start();
    }
    const numbers = Array.from({ length: request.spec.numSequences }, () => this.#nextSequence++);
    const numKnown = numbers.map(() => 0);
    const guided: Guided = { request, numbers, numKnown, numOpening: numbers.length, failure: null };
    this.#guided.set(request, guided);
    for (const sequence of numbers) {
      this.#bySequence.set(sequence, guided);
      thread.post({ type: 'open', sequence, guide, endTokens: endingTokens });
    }
  }

  /** Forgets a request that leaves. */
  close(request: LlmRequest): void {
    const guided = this.#guided.get(request);
    if (guided === undefined) return;
    this.#guided.delete(request);
    for (const sequence of guided.numbers) this.#bySequence.delete(sequence);
    if (this.#thread?.isDead === false) this.#thread.post({ type: 'close', sequences: guided.numbers });
  }

  /** Those of the requests that can run now. Those whose guides turned out to be wrong fail; one in flight fails by its step. */
  ready(active: readonly LlmRequest[]): readonly LlmRequest[] {
    if (this.#guided.size === 0) return active;
    this.#receive();
    if (this.#thread!.isDead) this.#failAll();
    return active.filter((request) => {
      const guided = this.#guided.get(request);
      if (guided === undefined) return true;
      if (guided.failure !== null && !request.inFlight) {
        request.error = guided.failure.error;
        request.isInvalid = guided.failure.isInvalid;
        return false;
      }
      return guided.numOpening === 0;
    });
  }

  /** Sleeps until the thread has something to say, for a short while at most. */
  waitAWhile(): void {
    if (this.#guided.size > 0) this.#thread!.wait(WAIT_MS);
  }

  /** Asks for the masks of these rows. They are there after `finish`. */
  ask(rows: readonly RequestRows[], masks: GuideMasks): TokenMasks {
    const { memory, words, maskOfRow } = masks.of(this.#vocabSize);
    const entries: number[] = [];
    maskOfRow.fill(-1);
    for (const { request, firstRow, sequences } of rows) {
      const guided = this.#guided.get(request)!;
      for (const [i, sequence] of sequences.entries()) {
        const row = firstRow + i;
        const number = guided.numbers[sequence.index]!;
        const first = request.originalPromptLength;
        const end = request.numTokens - first;
        const position = Math.min(guided.numKnown[sequence.index]!, end);
        maskOfRow[row] = row;
        entries.push(number, row, position, end - position);
        for (let place = position; place < end; place++) entries.push(sequence.tokens[first + place]!);
        guided.numKnown[sequence.index] = end;
      }
    }
    masks.step = this.#step++;
    this.#thread!.post({ type: 'mask', step: masks.step, words: memory, entries: Int32Array.from(entries) });
    return { words, maskOfRow };
  }

  /** Waits for the masks that were asked for; requests that get none are put into `failures`. */
  finish(rows: readonly RequestRows[], masks: GuideMasks, failures: RowFailures): void {
    const thread = this.#thread!;
    const startMs = performance.now();
    this.#receive();
    while (this.#masked < masks.step && !thread.isDead) {
      thread.wait(STUCK_MS);
      this.#receive();
      if (this.#masked < masks.step && performance.now() - startMs > STUCK_MS) thread.stop();
    }
    if (this.#masked < masks.step) this.#failAll();
    for (const { request } of rows) {
      const guided = this.#guided.get(request)!;
      const why =
        guided.failure?.error ??
        guided.numbers.map((number) => this.#rowFailures.get(number)).find((error) => error !== undefined);
      if (why !== undefined) failures.set(request, why);
    }
    this.#rowFailures.clear();
  }

  #receive(): void {
    for (let reply = this.#thread!.receive(); reply !== undefined; reply = this.#thread!.receive()) {
      this.#take(reply);
    }
  }

  #take(reply: GuideReply): void {
    if (reply.type === 'masked') {
      this.#masked = reply.step;
      for (const { sequence, error } of reply.failures) this.#rowFailures.set(sequence, error);
      return;
    }
    const guided = this.#bySequence.get(reply.sequence);
    if (guided === undefined) return;
    guided.numOpening--;
    if (reply.error !== '') guided.failure = reply;
  }

  #failAll(): void {
    const error = 'The thread that follows guides ended before this answer was complete; try again.';
    for (const guided of this.#guided.values()) guided.failure ??= { error, isInvalid: false };
  }
}
