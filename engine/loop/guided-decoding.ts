import type { RequestRows } from '../batch/batch-former.js';
import { MAX_FORCED_TOKENS } from '../guided/forced-tokens.js';
import type { GuideReply, GuideThread } from '../guided/guide-messages.js';
import type { TokenMasks } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import { mayJump } from '../speculation/may-draft.js';
import type { MaskWait } from './guide-masks.js';
import { GuideThreadDeaths } from './guide-thread-deaths.js';
import { GuidedRequest, guideFailure } from './guided-request.js';

/** Time without a reply to open requests after which the loop considers the thread dead. */
const STUCK_MS = 60_000;
/** Time that the loop sleeps at once if it has to wait for guides only. */
const WAIT_MS = 5;
/** Limits on a step's wait for its masks after its forward; within these it waits as long as the forward took. */
const [MIN_WAIT_MS, MAX_WAIT_MS] = [2, 10];
const NO_TOKENS = new Int32Array(0);

export interface GuidedDecodingOptions {
  vocabSize: number;
  /** True if there are rows for the tokens of `forcedBehind`. */
  canDraft: boolean;
  /** All requests of a step go on together, so a step waits for the last of its masks. */
  isLockstep: boolean;
  /** Whether a step of the request can be computed again. */
  mayRepeat: (request: LlmRequest) => boolean;
}

/**
 * The loop's side of guided decoding. It asks for the masks of a step when its tokens are known, runs the step's forward,
 * and waits for them a moment before it samples. A request whose masks are late is left out of the sampling, and of later
 * batches until they have come: only that request waits, and its bits are the same.
 *
 *   loop     pack, ask | forward ............ | wait | sample | update | pack, ask | forward ...
 *   thread             | mask mask mask mask  |                        | mask mask
 *
 * A request is not scheduled before its guide has been read, so others never wait for that. If the thread dies, another
 * one is started, which reads the guides again and follows the existing tokens. A guide that has killed two threads fails.
 */
export class GuidedDecoding {
  readonly #thread: GuideThread | null;
  readonly #options: GuidedDecodingOptions;
  readonly #guided = new Map<LlmRequest, GuidedRequest>();
  readonly #bySequence = new Map<number, GuidedRequest>();
  #nextSequence = 0;
  #step = 0;
  #hasStarted = false;
  readonly #deaths = new GuideThreadDeaths();
  #heardMs = 0;

  constructor(thread: GuideThread | null, options: GuidedDecodingOptions) {
    this.#thread = thread;
    this.#options = options;
  }

  /** True if requests may have guides. */
  get isAvailable(): boolean {
    return this.#thread !== null;
  }

  /** Takes a request on, if it has a guide. */
  open(request: LlmRequest): void {
    const thread = this.#thread;
    if (request.spec.guide === null || thread === null) return;
    if (thread.isDead) this.#restart();
    const { vocabSize, canDraft } = this.#options;
    const guided = new GuidedRequest(request, this.#nextSequence, vocabSize, canDraft);
    this.#nextSequence += guided.count;
    this.#guided.set(request, guided);
    for (let i = 0; i < guided.count; i++) this.#bySequence.set(guided.first + i, guided);
    this.#heardMs = performance.now();
    thread.post(guided.opening());
  }

  /** Forgets a request that leaves. */
  close(request: LlmRequest): void {
    const guided = this.#guided.get(request);
    if (guided === undefined) return;
    const { first, count } = guided;
    this.#guided.delete(request);
    for (let i = 0; i < count; i++) this.#bySequence.delete(first + i);
    if (this.#thread?.isDead === false) this.#thread.post({ type: 'close', first, count });
  }

  /**
   * Returns the requests that can run now, and those that hold blocks but have to wait for their masks, for which
   * `isHeld` is set. Requests that cannot be guided fail; one in flight fails after its step.
   */
  ready(active: readonly LlmRequest[]): readonly LlmRequest[] {
    if (this.#guided.size === 0) return active;
    this.#listen();
    const early = active.filter((request) => this.#isAskedEarly(request));
    if (early.length > 0) {
      this.#post(early);
      this.#receive();
    }
    return active.filter((request) => this.#canBePlanned(request));
  }

  /** Sleeps until the thread replies, for a short while at most. */
  waitAWhile(): void {
    if (this.#guided.size > 0) this.#thread!.wait(WAIT_MS);
  }

  /**
   * Tokens that the guide forces after the newest one, if known already: the thread sends them after its
   * masks, and no request waits for them.
   */
  forcedBehind(request: LlmRequest): Int32Array {
    const guided = this.#guided.get(request);
    if (guided === undefined || guided.isAsked) return NO_TOKENS;
    const position = guided.end - 1;
    const newest = request.tokens[request.numTokens - 1];
    const found = guided.forced.find(([at, token]) => at === position && token === newest);
    return found?.subarray(3, 3 + guided.reach) ?? NO_TOKENS;
  }

  /**
   * Notes how much of a draft was right. The text is forced, but not how the model cuts it into tokens: if it cuts it
   * otherwise, fewer tokens are drafted the next time, one more than were right; if all were right, twice as many.
   */
  noteVerified(request: LlmRequest, drafted: number, accepted: number): void {
    const guided = this.#guided.get(request);
    if (guided === undefined) return;
    const most = accepted < drafted ? accepted + 1 : Math.max(guided.reach, 2 * drafted);
    guided.reach = Math.min(MAX_FORCED_TOKENS, most);
  }

  /** Asks for the masks of these rows, if not asked for before. `finish` delivers them. */
  ask(rows: readonly RequestRows[]): void {
    const open = rows.filter(({ request }) => {
      const guided = this.#guided.get(request)!;
      return !guided.isAsked && guided.isOpen;
    });
    this.#post(open.map(({ request }) => request));
  }

  /**
   * Waits for the masks of these rows, for about as long as the forward took, and writes them into memory for sampling.
   * Requests whose masks have not come are added to `late`, or with the reason to `failures`.
   */
  finish(rows: readonly RequestRows[], { masks, forwardMs, late, failures }: MaskWait): TokenMasks {
    this.#await(rows, forwardMs);
    const { words, maskOfRow } = masks.of(this.#options.vocabSize);
    maskOfRow.fill(-1);
    for (const { request, firstRow, sequences } of rows) {
      const guided = this.#guided.get(request)!;
      if (guided.failure !== null) {
        failures.set(request, guided.failure);
      } else if (!guided.hasMasks) {
        guided.isSlow = true;
        guided.looks = 0;
        late.add(request);
      } else {
        for (const [i, { index }] of sequences.entries()) {
          for (let ahead = 0; ahead <= request.draftLength; ahead++) {
            const row = firstRow + i + ahead;
            guided.copyMask(index, ahead, words, row);
            maskOfRow[row] = row;
          }
        }
      }
    }
    return { words, maskOfRow };
  }

  #await(rows: readonly RequestRows[], forwardMs: number): void {
    const { isLockstep } = this.#options;
    const untilMs = performance.now() + Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, forwardMs));
    const isWaiting = ({ request }: RequestRows) => {
      const { failure, hasMasks } = this.#guided.get(request)!;
      return failure === null && !hasMasks;
    };
    for (this.#listen(); rows.some(isWaiting); this.#listen()) {
      if (isLockstep) this.ask(rows);
      const leftMs = isLockstep ? WAIT_MS : untilMs - performance.now();
      if (leftMs <= 0 || (!this.#thread!.wait(leftMs) && !isLockstep)) return;
    }
  }

  /**
   * True if masks are to be asked for before the request is scheduled: if its last ones came late, or if its next step
   * must not be computed twice: one of its context, or of states that cannot be taken back.
   */
  #isAskedEarly(request: LlmRequest): boolean {
    const guided = this.#guided.get(request);
    if (guided === undefined || request.inFlight || guided.failure !== null) return false;
    if (guided.isAsked || !guided.isOpen) return false;
    if (request.phase === 'context') return true;
    const { isLockstep, mayRepeat } = this.#options;
    return !isLockstep && (guided.isSlow || !mayRepeat(request));
  }

  #canBePlanned(request: LlmRequest): boolean {
    const guided = this.#guided.get(request);
    if (guided === undefined || request.inFlight) return true;
    request.isHeld = false;
    if (guided.failure !== null) {
      request.failure = guided.failure;
      return false;
    }
    if (guided.hasMasks) {
      // The masks came while no more than one other step ran, so the next ones can wait until the request is packed.
      if (guided.looks <= 1) guided.isSlow = false;
      guided.looks = 0;
      return true;
    }
    if (guided.isOpen && !guided.isAsked) return true;
    guided.looks++;
    if (this.#options.isLockstep && request.phase === 'generation') return true;
    request.isHeld = request.blocksHeld > 0;
    return request.isHeld;
  }

  #post(requests: readonly LlmRequest[]): void {
    if (requests.length === 0) return;
    const entries: number[] = [];
    const step = this.#step++;
    for (const request of requests) {
      this.#guided.get(request)!.ask(step, this.#options.canDraft && mayJump(request), entries);
    }
    if (!this.#isWaiting(requests)) this.#heardMs = performance.now();
    this.#thread!.post({ type: 'mask', step, entries: Int32Array.from(entries) });
  }

  /** True if a request other than these waits for the thread. */
  #isWaiting(asking: readonly LlmRequest[]): boolean {
    for (const [request, guided] of this.#guided) {
      if (!asking.includes(request) && (!guided.isOpen || (guided.isAsked && !guided.hasMasks))) return true;
    }
    return false;
  }

  /** Takes the thread's replies; if the thread has died, starts another one. */
  #listen(): void {
    this.#receive();
    const thread = this.#thread!;
    const isStuck = performance.now() - this.#heardMs > STUCK_MS && this.#isWaiting([]);
    if (isStuck && !thread.isDead) thread.stop();
    if (thread.isDead) this.#restart();
  }

  #receive(): void {
    for (let reply = this.#thread!.receive(); reply !== undefined; reply = this.#thread!.receive()) {
      this.#deaths.noteWord();
      this.#heardMs = performance.now();
      this.#take(reply);
    }
  }

  #take(reply: GuideReply): void {
    if (reply.type === 'masked') {
      for (let i = 0; i < reply.done.length; i += 2) {
        const sequence = reply.done[i + 1]!;
        this.#bySequence.get(sequence)?.noteMask(reply.done[i]!, sequence);
      }
      for (const failure of reply.failures) this.#bySequence.get(failure.sequence)?.noteFailure(failure);
    } else if (reply.type === 'forced') this.#takeForced(reply);
    else {
      const guided = this.#bySequence.get(reply.first);
      if (reply.error === '') guided?.noteOpened();
      else if (guided !== undefined) guided.failure ??= guideFailure(reply.error, reply.isInvalid);
    }
  }

  /**
   * Takes forced tokens. If the next masks have been asked for already, they are too late, and may belong to a text
   * that was not generated.
   */
  #takeForced({ step, entries }: Extract<GuideReply, { type: 'forced' }>): void {
    for (let i = 0; i < entries.length; ) {
      const end = i + 4 + entries[i + 3]!;
      const guided = this.#bySequence.get(entries[i]!);
      if (guided?.step === step) guided.forced.push(entries.subarray(i + 1, end));
      i = end;
    }
  }

  /** Starts a thread and makes it read the guides of all open requests. The tokens so far follow with the next masks. */
  #restart(): void {
    const thread = this.#thread!;
    if (this.#hasStarted) {
      this.#deaths.note(this.#bySequence.get(thread.busyWith), this.#guided.values());
    }
    this.#hasStarted = true;
    this.#heardMs = performance.now();
    thread.start();
    for (const guided of this.#guided.values()) {
      if (guided.failure === null) thread.post(guided.opening());
    }
  }
}
