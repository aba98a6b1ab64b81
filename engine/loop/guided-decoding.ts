import type { TokenMasks } from '../decoding/sampling-batch.js';
import { MAX_FORCED_TOKENS } from '../guided/forced-tokens.js';
import { type GuideReply, type GuideThread, wordsOfMask } from '../guided/guide-messages.js';
import type { LlmRequest } from '../llm-request.js';
import { mayJump } from '../speculation/may-draft.js';
import type { RequestRows, RowFailures } from './logits-stage.js';

/** How long the loop waits for masks before it holds the thread for dead; it limits itself to less for each row. */
const STUCK_MS = 20_000;
/** How long the loop sleeps at a time where all there is to do is to wait for guides. */
const WAIT_MS = 5;
const NO_TOKENS = new Int32Array(0);

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
  /** The step that its masks were last asked for in. */
  step: number;
  /** What is certain behind the tokens that that step may draw: position, token, count and tokens, for each. */
  forced: Int32Array[];
  /** Most of these tokens that are worth a row. */
  reach: number;
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
  readonly #canDraft: boolean;
  readonly #guided = new Map<LlmRequest, Guided>();
  readonly #bySequence = new Map<number, Guided>();
  #nextSequence = 0;
  #step = 0;
  /** The step whose masks have come last. */
  #masked = -1;
  readonly #rowFailures = new Map<number, string>();

  /** `canDraft`: there are rows for what `forcedBehind` says. */
  constructor(thread: GuideThread | null, vocabSize: number, canDraft: boolean) {
    this.#thread = thread;
    this.#vocabSize = vocabSize;
    this.#canDraft = canDraft;
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
    const numOpening = numbers.length;
    const guided: Guided = {
      request,
      numbers,
      numKnown,
      numOpening,
      failure: null,
      step: -1,
      forced: [],
      reach: MAX_FORCED_TOKENS,
    };
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

  /**
   * The tokens that the guide leaves no choice about behind the newest one, as far as that is known: the thread says it
   * after its masks, and nobody waits for it.
   */
  forcedBehind(request: LlmRequest): Int32Array {
    const position = request.numTokens - request.originalPromptLength - 1;
    const newest = request.tokens[request.numTokens - 1];
    const guided = this.#guided.get(request);
    const found = guided?.forced.find(([at, token]) => at === position && token === newest);
    return found?.subarray(3, 3 + guided!.reach) ?? NO_TOKENS;
  }

  /**
   * The text is forced, not how the model cuts it into tokens. Where it cuts it otherwise, fewer are drafted: one more than
   * were right, and twice as many each time all were.
   */
  noteVerified(request: LlmRequest, drafted: number, accepted: number): void {
    const guided = this.#guided.get(request);
    if (guided === undefined) return;
    const { reach } = guided;
    guided.reach = Math.min(
      MAX_FORCED_TOKENS,
      accepted < drafted ? accepted + 1 : Math.max(reach, 2 * drafted),
    );
  }

  /** Asks for the masks of these rows. They are there after `finish`. */
  ask(rows: readonly RequestRows[], masks: GuideMasks): TokenMasks {
    const { memory, words, maskOfRow } = masks.of(this.#vocabSize);
    const entries: number[] = [];
    maskOfRow.fill(-1);
    masks.step = this.#step++;
    for (const { request, firstRow, sequences } of rows) {
      const guided = this.#guided.get(request)!;
      const { draftLength } = request;
      const jumps = this.#canDraft && mayJump(request) ? 1 : 0;
      guided.step = masks.step;
      guided.forced = [];
      for (const [i, sequence] of sequences.entries()) {
        const row = firstRow + i;
        const number = guided.numbers[sequence.index]!;
        const first = request.originalPromptLength;
        const end = request.numTokens - first;
        const position = Math.min(guided.numKnown[sequence.index]!, end);
        for (let ahead = 0; ahead <= draftLength; ahead++) maskOfRow[row + ahead] = row + ahead;
        entries.push(number, row, position, end - position, draftLength, jumps);
        for (let place = position; place < end + draftLength; place++)
          entries.push(sequence.tokens[first + place]!);
        guided.numKnown[sequence.index] = end;
      }
    }
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
    if (reply.type === 'forced') {
      this.#takeForced(reply);
      return;
    }
    const guided = this.#bySequence.get(reply.sequence);
    if (guided === undefined) return;
    guided.numOpening--;
    if (reply.error !== '') guided.failure = reply;
  }

  /** What comes too late, when the next masks have been asked for, is of a text that may not be there. */
  #takeForced({ step, entries }: Extract<GuideReply, { type: 'forced' }>): void {
    for (let i = 0; i < entries.length; ) {
      const end = i + 4 + entries[i + 3]!;
      const guided = this.#bySequence.get(entries[i]!);
      if (guided?.step === step) guided.forced.push(entries.subarray(i + 1, end));
      i = end;
    }
  }

  #failAll(): void {
    const error = 'The thread that follows guides ended before this answer was complete; try again.';
    for (const guided of this.#guided.values()) guided.failure ??= { error, isInvalid: false };
  }
}
