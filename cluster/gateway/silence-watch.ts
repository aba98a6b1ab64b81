import { says } from '../../base/named-text.js';
import { failure } from '../../callbacks/request-failure.js';
import { NoWorkerError, RequestError } from '../../callbacks/token-request.js';
import { type Beat, nameOfKey } from '../nats/beat.js';
import type { GatewayPort } from '../nats/gateway-port.js';
import type { SilenceLimits, WorkerRoster } from '../nats/worker-roster.js';
import type { Attempts } from './attempts.js';
import { isOffer, type QueuedRequest } from './queued-request.js';

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

/** Looks, again and again, for workers that are silent, and for requests that no worker takes. */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  readonly #roster: WorkerRoster;
  readonly #attempts: Attempts;
  readonly #timer: NodeJS.Timeout;
  /** When the connection was lost, on the gateway's clock; null: it is there. */
  #awaySinceMs: number | null = null;
  #isClosed = false;

  constructor(options: SilenceWatchOptions, roster: WorkerRoster, attempts: Attempts) {
    this.#options = options;
    this.#roster = roster;
    this.#attempts = attempts;
    const everyMs = Math.max(20, Math.min(250, options.silence.probeAfterMs / 2));
    this.#timer = setInterval(() => this.#look(performance.now()), everyMs);
  }

  get isConnected(): boolean {
    return this.#awaySinceMs === null;
  }

  /** While nothing can be heard nobody is silent. */
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

  #look(nowMs: number): void {
    if (this.#awaySinceMs !== null) {
      this.#lookWhileAway(this.#awaySinceMs, nowMs);
      return;
    }
    const { toProbe, lost } = this.#roster.silent(nowMs, this.#options.silence);
    for (const worker of toProbe) void this.#probe(worker);
    for (const worker of lost) this.#options.onLost(worker);
    const reticent = this.#roster.reticent(this.#attempts.book.holders(), this.#options.silence);
    for (const worker of reticent) this.#attempts.fallAllOf(worker, 'gap');
    for (const request of [...this.#attempts.requests.values()])
      if (request.stage !== 'leased') this.#lookAt(request, nowMs);
  }

  /** Nobody can be reached: a request waits no longer for that than for a worker, also one that a worker has. */
  #lookWhileAway(awaySinceMs: number, nowMs: number): void {
    for (const request of [...this.#attempts.requests.values()]) {
      const sinceMs = request.stage === 'leased' ? awaySinceMs : request.waitingSinceMs;
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

  /** A request that no worker has been there for, for too long, gets an error. */
  #lookAt(request: QueuedRequest, nowMs: number): void {
    const { workerWaitMs, allowsDifferentBits } = this.#options;
    const { stage, pool, model } = request;
    const mayMove = pool === null || !request.hasBegun || allowsDifferentBits;
    const isThere = this.#hasTaker(isOffer(stage) || !mayMove ? pool!.fingerprint : null, model);
    if (isThere) {
      request.waitingSinceMs = nowMs;
      if (stage === 'offered') this.#offerAnew(request, nowMs);
    }
    // Its workers are gone, and others would do.
    else if (stage === 'offered' && mayMove && this.#hasTaker(null, model))
      this.#attempts.fall(request, 'moved');
    else if (nowMs - request.waitingSinceMs >= workerWaitMs)
      this.#attempts.fail(request, noWorker(request, !mayMove));
  }

  /** A worker that is stopped, or cut off, may have got it before anybody knew. */
  #offerAnew(request: QueuedRequest, nowMs: number): void {
    const takers = this.#roster.takersOf(request.pool!.fingerprint);
    if (nowMs < request.patientUntilMs || !takers.some(({ places, held }) => held < places)) return;
    // They may only be slow: it does not become more and more attempts.
    request.patienceMs *= 2;
    this.#attempts.fall(request, 'gap');
  }

  /** A worker takes requests for the model. @param pool null: in any pool */
  #hasTaker(pool: string | null, model: string): boolean {
    const workers = pool === null ? this.#roster.ofModel(model) : this.#roster.takersOf(pool);
    return workers.some(({ isLeaving }) => !isLeaving);
  }
}

const AWAY =
  'The NATS server, over which workers are reached, cannot be reached at present; try again later.';

function noWorker({ model, pool }: QueuedRequest, isBound: boolean): Error {
  if (!isBound)
    return new NoWorkerError(`No worker has the model ${nameOfKey(model)} at present; try again later.`);
  return RequestError.of(
    failure(
      'internal',
      says`The answer was begun by a worker that is lost, and no equal worker is left (the same weights, version, instruction set and options: ${pool!.fingerprint}); with --allow-different-bits another one goes on.`,
    ),
  );
}
