import { says } from '../base/named-text.js';
import { failure, type RequestFailure } from '../callbacks/request-failure.js';
import { HostClosedError, RequestError } from '../callbacks/token-request.js';
import type { HostEntry } from './host-entry.js';
import { withKnownOutputs } from './token-inputs.js';

/** Calls into the host. */
interface ResumptionCalls {
  /** Has the engine ask for requests. */
  wake(): void;
  /** Ends a request that no engine has. */
  end(entry: HostEntry, reason: 'cancelled' | 'timeout'): void;
  /** Ends a request all of whose sequences have ended. */
  finish(entry: HostEntry): void;
  fail(entry: HostEntry, error: Error): void;
}

/**
 * The requests that an engine had when it was lost, until the next one takes them:
 *
 *   engine --lost--> [ here ] --next engine--> with the tokens so far
 *                       |
 *                       '-- cancelled, timed out, poisoned, no next engine: ended
 *
 * Which of them is to blame is not known. One that was lost so often without a token that once more would be the last is a suspect: each of
 * these has an engine for itself until its first token, and no request joins meanwhile. So the one that kills engines fails alone.
 */
export class Resumption {
  readonly #calls: ResumptionCalls;
  readonly #lost = new Set<HostEntry>();
  /** The suspect that an engine has at present. */
  #onTrial: HostEntry | null = null;
  #limit: NodeJS.Timeout | null = null;

  constructor(calls: ResumptionCalls) {
    this.#calls = calls;
  }

  /** Number of requests that wait for the next engine. */
  get size(): number {
    return this.#lost.size;
  }

  /** The requests that wait for the next engine. */
  lost(): Iterable<HostEntry> {
    return this.#lost;
  }

  /** The one request that may join the engine's; null: all may. */
  get onTrial(): HostEntry | null {
    return this.#onTrial?.faults.hasGained === false ? this.#onTrial : null;
  }

  /** True where a request waits here. */
  has(entry: HostEntry): boolean {
    return this.#lost.has(entry);
  }

  /** The engine was lost with the request. */
  lose(entry: HostEntry, why: RequestFailure): void {
    if (this.#onTrial === entry) this.#onTrial = null;
    entry.isWaiting = true;
    entry.isPaused = false;
    if (entry.adapter !== null) entry.adapter.wasCarried = false;
    if (entry.isCancelled) this.#calls.end(entry, 'cancelled');
    else if (performance.now() >= entry.deadlineMs) this.#calls.end(entry, 'timeout');
    else if (entry.pieces.isOver(entry.left)) this.#calls.finish(entry);
    else if (entry.whyNotResumed !== null) {
      const text = says`${why.text} The request does not go on in the next engine: ${entry.whyNotResumed}.`;
      this.#calls.fail(entry, RequestError.of({ ...why, text }));
    } else if (entry.faults.fall('lost') === 'poisoned') {
      this.#calls.fail(entry, RequestError.of(poisoned(entry, why)));
    } else this.#lost.add(entry);
  }

  /**
   * Requests that the next engine takes now, the oldest first.
   * @param max most of them; below 0: all @param engine its fingerprint
   */
  takeNext(max: number, engine: string): HostEntry[] {
    if (this.#lost.size === 0 || max === 0 || this.onTrial !== null) return [];
    const all = [...this.#lost].sort((a, b) => (a.request.requestId < b.request.requestId ? -1 : 1));
    const suspect = all.find(({ faults }) => faults.isSuspect);
    this.#onTrial = suspect ?? null;
    const next = suspect !== undefined ? [suspect] : max < 0 ? all : all.slice(0, max);
    return next.filter((entry) => {
      this.#lost.delete(entry);
      return this.#begin(entry, engine);
    });
  }

  /** Makes the next attempt of a request. False: it has failed. */
  #begin(entry: HostEntry, engine: string): boolean {
    const { answer } = entry.pieces;
    if (answer.hasBegun && entry.engine !== engine) {
      const why = `The engine was lost, and the one that took its place computes other bits (${engine}, not ${entry.engine}): the answer cannot go on.`;
      this.#calls.fail(entry, RequestError.of(failure('internal', why)));
      return false;
    }
    const known = answer.next(entry.left);
    const { asked } = entry;
    entry.request = known === null ? asked : { ...asked, inputs: withKnownOutputs(asked.inputs, known) };
    const { submittedMs, firstScheduledMs, firstTokenMs } = entry;
    const since = (ms: number | null) => (ms === null ? null : ms - submittedMs);
    const earlier = { firstScheduledMs: since(firstScheduledMs), firstTokenMs: since(firstTokenMs) };
    entry.pieces.beginAttempt(known !== null, earlier);
    return true;
  }

  /** Whether the next engine comes is unknown: requests that wait for it longer than this fail. */
  limitWait(limitMs: number, why: string): void {
    this.#limit ??= setTimeout(() => {
      this.#limit = null;
      for (const entry of [...this.#lost]) this.#calls.fail(entry, new HostClosedError(why));
    }, limitMs).unref();
  }

  /** The next engine is about to come. */
  endLimit(): void {
    if (this.#limit !== null) clearTimeout(this.#limit);
    this.#limit = null;
  }

  /** Forgets a request that has ended. */
  end(entry: HostEntry): void {
    this.#lost.delete(entry);
    if (this.#onTrial !== entry) return;
    this.#onTrial = null;
    this.#calls.wake();
  }
}

function poisoned({ faults }: HostEntry, why: RequestFailure): RequestFailure {
  const times = faults.attempt - 1;
  const text = says`The request was begun ${times} times, and its engine was lost in ${faults.lost === times ? 'each' : faults.lost} of them; it is not tried again. ${why.text}`;
  return failure('internal', text);
}
