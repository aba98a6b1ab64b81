import { says } from '../../base/named-text.js';
import { failure } from '../../callbacks/request-failure.js';
import { NoWorkerError, RequestError } from '../../callbacks/token-request.js';
import { type Beat, nameOfKey } from '../nats/beat.js';
import type { GatewayPort } from '../nats/gateway-port.js';
import type { SilenceLimits, WorkerRoster } from '../nats/worker-roster.js';
import type { Attempts } from './attempts.js';
import type { QueuedRequest } from './queued-request.js';
import { impatient, mayMove, type UnleasedGroup } from './unleased.js';

export interface SilenceWatchOptions {
  port: Pick<GatewayPort, 'probe'>;
  silence: SilenceLimits;
  /** Milliseconds that a request waits for a worker where there is none that could take it. */
  workerWaitMs: number;
  allowsDifferentBits: boolean;
  /** A worker that was asked has answered. */
  onBeat: (beat: Beat) => void;
  /** A worker is lost. */
  onLost: (worker: string) => void;
}

/** Workers that are given up, and requests that are moved, in one turn of the loop: others have theirs in between. */
const MAX_IN_TURN = 64;
/** Milliseconds of one turn for workers that are given up: what is known of their caches goes with them, which may be thousands of blocks. */
const MAX_TURN_MS = 8;

/** Looks, again and again, for workers that are silent, and for requests that no worker takes. */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  readonly #roster: WorkerRoster;
  readonly #attempts: Attempts;
  readonly #timer: NodeJS.Timeout;
  /** When the connection was lost, on the gateway's clock; null: it is there. */
  #awaySinceMs: number | null = null;
  #isClosed = false;
  /** There was more than one turn has room for. */
  #hasMore = false;

  constructor(options: SilenceWatchOptions, roster: WorkerRoster, attempts: Attempts) {
    this.#options = options;
    this.#roster = roster;
    this.#attempts = attempts;
    const everyMs = Math.max(20, Math.min(250, options.silence.probeAfterMs / 2));
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  get isConnected(): boolean {
    return this.#awaySinceMs === null;
  }

  /** While the gateway is disconnected, no worker counts as silent. */
  noteConnected(isConnected: boolean): void {
    const nowMs = performance.now();
    if (!isConnected) this.#awaySinceMs ??= nowMs;
    else {
      this.#awaySinceMs = null;
      this.#roster.beginAnew(nowMs);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    if (this.#isClosed) return;
    if (this.#awaySinceMs !== null) {
      this.#lookWhileAway(this.#awaySinceMs, nowMs);
      return;
    }
    this.#hasMore = false;
    this.#lookAtWorkers(nowMs);
    for (const group of [...this.#attempts.unleased.groups()]) this.#lookAt(group, nowMs);
    if (this.#hasMore) setImmediate(() => this.#look());
  }

  #lookAtWorkers(nowMs: number): void {
    const { silence, onLost } = this.#options;
    const { toProbe, lost } = this.#roster.silent(nowMs, silence);
    for (const worker of toProbe) void this.#probe(worker);
    this.#eachOf(lost, onLost);
    const hasRequests = (worker: string) => this.#attempts.book.heldBy(worker).size > 0;
    const reticent = this.#roster.reticent(nowMs, silence, hasRequests);
    this.#eachOf(reticent, (worker) => this.#attempts.fallAllOf(worker, 'gap'));
  }

  /** As many as one turn has room for. */
  #eachOf(workers: readonly string[], giveUp: (worker: string) => void): void {
    const startMs = performance.now();
    for (const [index, worker] of workers.entries()) {
      if (index === MAX_IN_TURN || (index > 0 && performance.now() - startMs > MAX_TURN_MS)) {
        this.#hasMore = true;
        return;
      }
      giveUp(worker);
    }
  }

  /**
   * No worker can be reached: a request waits for the connection no longer than for a worker, even if a
   * worker has it.
   */
  #lookWhileAway(awaySinceMs: number, nowMs: number): void {
    for (const request of this.#attempts.requests.values()) {
      const sinceMs = request.stage === 'leased' ? awaySinceMs : this.#attempts.unleased.sinceMs(request);
      if (nowMs - sinceMs >= this.#options.workerWaitMs)
        this.#attempts.fail(request, new NoWorkerError(AWAY));
    }
  }

  async #probe(worker: string): Promise<void> {
    const answer = await this.#options.port.probe(worker);
    if (this.#isClosed) return;
    if (answer === null) this.#roster.noteUnanswered(worker);
    else if (answer === 'nobody') {
      if (this.isConnected && this.#roster.find(worker)?.isProbed) this.#options.onLost(worker);
    } else this.#options.onBeat(answer);
  }

  /** Requests that no worker has been there for, for too long, get an error. */
  #lookAt(group: UnleasedGroup, nowMs: number): void {
    const { workerWaitMs, allowsDifferentBits } = this.#options;
    const { pool, first } = group;
    if (pool === null ? this.#attempts.hasTakersFor(first) : this.#roster.hasTakers(pool)) {
      group.seenMs = nowMs;
      if (pool !== null) this.#offerAnew(group, pool, nowMs);
      return;
    }
    let numMoved = 0;
    for (const request of [...group.requests]) {
      const isFree = mayMove(request, allowsDifferentBits);
      // Its workers are gone, and others would do.
      if (request.stage === 'offered' && isFree && this.#attempts.hasTakersFor(request)) {
        numMoved += 1;
        if (numMoved > MAX_IN_TURN) {
          this.#hasMore = true;
          return;
        }
        this.#attempts.fall(request, 'moved');
      } else if (nowMs - this.#attempts.unleased.sinceMs(request) >= workerWaitMs)
        this.#attempts.fail(request, noWorker(request, !isFree));
    }
  }

  /**
   * A worker that is stopped, or cut off, may have got some before this was known. While places are free, a
   * worker that has one would have taken what lies in the stream; the others may only be slow, so it does not
   * become more and more attempts, nor more than those places.
   */
  #offerAnew(group: UnleasedGroup, pool: string, nowMs: number): void {
    const { free } = this.#roster.pool(pool)!.sums;
    for (const request of impatient(group, nowMs, Math.min(free, MAX_IN_TURN))) {
      request.patienceMs *= 2;
      this.#attempts.fall(request, 'gap');
    }
  }
}

const AWAY =
  'The NATS server, over which workers are reached, cannot be reached at present; try again later.';

function noWorker({ model, pool, pin }: QueuedRequest, isBound: boolean): Error {
  if (!isBound && pin !== null)
    return new NoWorkerError(
      `No worker has the model ${nameOfKey(model)} with the engine ${pin}, which the request names, at present; try again later.`,
    );
  if (!isBound)
    return new NoWorkerError(`No worker has the model ${nameOfKey(model)} at present; try again later.`);
  return RequestError.of(
    failure(
      'internal',
      says`The answer was begun by a worker that is lost, and no equal worker is left (the same weights, version, instruction set and options: ${pool!.fingerprint}); with --allow-different-bits another one goes on.`,
    ),
  );
}
