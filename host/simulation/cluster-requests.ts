import type { ClusterArrival, ClusterRequestResult } from './cluster-types.js';
import { RequestResults } from './request-results.js';

const NS_PER_MS = 1e6;

export function nsOf(ms: number): number {
  return Math.round(ms * NS_PER_MS);
}

export function msOf(ns: number): number {
  return ns / NS_PER_MS;
}

/** A request that has not ended. */
interface Underway extends ClusterRequestResult {
  arrival: ClusterArrival;
  atNs: number;
  /** Tokens that it has, and those of them that it had when it was sent to its present worker. */
  generated: number;
  known: number;
  hasBegun: boolean;
  /** Its present worker has brought a token. */
  hasToken: boolean;
}

/** The requests of a simulated cluster, by their numbers in the order of their coming, and what becomes of them. */
export class ClusterRequests {
  readonly results = new RequestResults();
  readonly #underway = new Map<number, Underway>();
  #generatedTokens = 0;
  #numEnded = 0;
  #endNs = 0;

  /** Tokens of those that have ended. */
  get generatedTokens(): number {
    return this.#generatedTokens;
  }

  /** Time at which the latest one has ended. */
  get endNs(): number {
    return this.#endNs;
  }

  get areAllOver(): boolean {
    return this.#numEnded === this.results.length;
  }

  /** Returns its number. */
  add(atNs: number, arrival: ClusterArrival): number {
    const request = this.results.add(arrival.tokens.length);
    this.#underway.set(request, {
      ...this.results.at(request),
      ...{ arrival, atNs, generated: 0, known: 0, hasBegun: false, hasToken: false },
    });
    return request;
  }

  #find(request: number): Underway {
    return this.#underway.get(request)!;
  }

  /** Most tokens that it takes. */
  costOf(request: number): number {
    const { tokens, maxNewTokens } = this.#find(request).arrival;
    return tokens.length + maxNewTokens;
  }

  hasBeenSent(request: number): boolean {
    return this.#find(request).attempts > 0;
  }

  /** Tokens that it still wants. */
  tokensLeft(request: number): number {
    const { arrival, generated } = this.#find(request);
    return arrival.maxNewTokens - generated;
  }

  /** The prompt and what was generated behind it, made up: unlike any other's. */
  tokensSoFar(request: number): Int32Array {
    const { arrival, atNs, generated } = this.#find(request);
    const { tokens } = arrival;
    if (generated === 0) return tokens;
    const longer = new Int32Array(tokens.length + generated);
    longer.set(tokens);
    for (let index = 0; index < generated; index += 1) {
      longer[tokens.length + index] = -1 - ((Math.imul(Math.floor(atNs / 1000), 0x9e3779b1) ^ index) >>> 2);
    }
    return longer;
  }

  /** It goes to a worker, which knows the tokens so far. */
  noteSent(request: number): void {
    const one = this.#find(request);
    one.attempts += 1;
    one.hasBegun = false;
    one.hasToken = false;
    one.known = one.generated;
  }

  /** Its context has run at its present worker, which had so many tokens of it in its cache, if this is the first time. */
  noteContext(request: number, cachedTokens: number): void {
    const one = this.#find(request);
    if (one.hasBegun) return;
    one.hasBegun = true;
    if (one.attempts === 1) one.cachedTokens = cachedTokens;
  }

  /** @param generated number of tokens that it has got of its present worker @returns true where it is the first one of that worker */
  noteTokens(nowNs: number, request: number, worker: number, generated: number): boolean {
    const one = this.#find(request);
    // A request that was paused computes its context once more, which brings no token.
    if (one.known + generated <= one.generated) return false;
    one.generated = one.known + generated;
    if (one.hasToken) return false;
    one.hasToken = true;
    if (!Number.isNaN(one.firstTokenMs)) return true;
    one.firstTokenMs = msOf(nowNs - one.atNs);
    one.worker = worker;
    return true;
  }

  noteEnd(nowNs: number, request: number): void {
    const one = this.#find(request);
    this.results.set(request, { ...one, lastTokenMs: msOf(nowNs - one.atNs) });
    this.#underway.delete(request);
    this.#generatedTokens += one.generated;
    this.#numEnded += 1;
    this.#endNs = nowNs;
  }
}
