import type { ClusterArrival, ClusterRequestResult } from './cluster-types.js';
import { RequestResults } from './request-results.js';
import { TokenBuffers } from './token-buffers.js';

const NS_PER_MS = 1e6;

export function nsOf(ms: number): number {
  return Math.round(ms * NS_PER_MS);
}

export function msOf(ns: number): number {
  return ns / NS_PER_MS;
}

/** A request that has not ended. */
interface Underway extends ClusterRequestResult {
  atNs: number;
  maxNewTokens: number;
  /** The prompt, and room for maxNewTokens after it. */
  sequence: Int32Array;
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
  readonly #buffers = new TokenBuffers();
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

  /** Returns its number. Its prompt is copied. */
  add(atNs: number, { tokens, maxNewTokens }: ClusterArrival): number {
    const request = this.results.add(tokens.length);
    const sequence = this.#buffers.take(tokens.length + maxNewTokens);
    sequence.set(tokens);
    this.#underway.set(request, {
      ...this.results.at(request),
      ...{ atNs, maxNewTokens, sequence, generated: 0, known: 0, hasBegun: false, hasToken: false },
    });
    return request;
  }

  #find(request: number): Underway {
    return this.#underway.get(request)!;
  }

  /** Most tokens that it takes. */
  costOf(request: number): number {
    return this.#find(request).sequence.length;
  }

  hasBeenSent(request: number): boolean {
    return this.#find(request).attempts > 0;
  }

  /** Tokens that it still wants. */
  tokensLeft(request: number): number {
    const { maxNewTokens, generated } = this.#find(request);
    return maxNewTokens - generated;
  }

  /**
   * The prompt, what was generated after it, made up and unlike any other's, and room for the rest; `length`:
   * of what is there.
   */
  tokensSoFar(request: number): { sequence: Int32Array; length: number } {
    const { sequence, promptTokens, atNs, generated } = this.#find(request);
    for (let index = 0; index < generated; index += 1) {
      sequence[promptTokens + index] = -1 - ((Math.imul(Math.floor(atNs / 1000), 0x9e3779b1) ^ index) >>> 2);
    }
    return { sequence, length: promptTokens + generated };
  }

  /** It goes to a worker, which knows the tokens so far. */
  noteSent(request: number): void {
    const one = this.#find(request);
    one.attempts += 1;
    one.hasBegun = false;
    one.hasToken = false;
    one.known = one.generated;
  }

  /**
   * Its context has run at its present worker, which had `cachedTokens` tokens of it in its cache, if this is
   * the first time.
   */
  noteContext(request: number, cachedTokens: number): void {
    const one = this.#find(request);
    if (one.hasBegun) return;
    one.hasBegun = true;
    if (one.attempts === 1) one.cachedTokens = cachedTokens;
  }

  /** A request that was paused computes its context once more, which brings no token. @param generated see noteTokens */
  hasNewTokens(request: number, generated: number): boolean {
    const one = this.#find(request);
    return one.known + generated > one.generated;
  }

  /** @param generated number of tokens that it has got of its present worker @returns true where it is the first one of that worker */
  noteTokens(nowNs: number, request: number, worker: number, generated: number): boolean {
    const one = this.#find(request);
    if (!this.hasNewTokens(request, generated)) return false;
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
    this.#buffers.give(one.sequence);
    this.#generatedTokens += one.generated;
    this.#numEnded += 1;
    this.#endNs = nowNs;
  }
}
