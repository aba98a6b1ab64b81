import { CacheRouter } from '../../callbacks/routing/cache-router.js';
import { promptHashes } from '../../kvcache/block-hashes.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { EventQueue } from './event-queue.js';
import { type SimulatedIteration, Simulation, type SimulationOptions } from './simulation.js';

/** How long an iteration takes. */
export interface Pace {
  /** Milliseconds of any iteration. */
  iterationMs: number;
  /** Milliseconds of each prompt token in it, and of each sequence that generates. */
  contextTokenMs: number;
  generationMs: number;
}

export type RoutingPolicy = 'random' | 'fewest-requests' | 'cache';

export interface ClusterOptions {
  workers: number;
  /** Each worker; block reuse is on. */
  worker: Omit<SimulationOptions, 'enableBlockReuse' | 'maxEvents'>;
  pace: Pace;
  routing: RoutingPolicy;
  /** Milliseconds until the router hears of what a cache has stored or removed. */
  eventDelayMs: number;
  /** 0 (included) to 1 (excluded), for random routing. */
  random: () => number;
  /** Workers that die, and come back with an empty cache. What was there goes to others with the tokens that it has. */
  deaths?: readonly { worker: number; atMs: number; backAtMs: number }[];
}

export interface ClusterArrival {
  atMs: number;
  /** The prompt. */
  tokens: Int32Array;
  maxNewTokens: number;
}

export interface ClusterRequestResult {
  /** Of the worker that brought the first token. */
  worker: number;
  /** Milliseconds from its arrival to its first token, and to its last. */
  firstTokenMs: number;
  lastTokenMs: number;
  /** Prompt tokens that its first worker found in its cache. */
  cachedTokens: number;
  /** Workers that it was sent to. */
  attempts: number;
}

export interface ClusterResult {
  requests: ClusterRequestResult[];
  iterations: number;
  /** Prompt tokens that were computed, those computed once more after a death included. */
  contextTokens: number;
}

/** Events of one iteration of one worker: more than its blocks. */
const MOST_EVENTS = 1_000_000;

interface Worker {
  name: string;
  simulation: Simulation;
  isBusy: boolean;
  isUp: boolean;
  /** Counts its lives: what an earlier one has begun does not end. */
  life: number;
  requests: Set<number>;
}

interface Underway extends ClusterRequestResult {
  arrival: ClusterArrival;
  /** Tokens that it has, and those of them that it had when it was sent to its present worker. */
  generated: number;
  known: number;
  hasBegun: boolean;
}

type Event =
  | { type: 'arrival'; request: number }
  | { type: 'done'; worker: Worker; life: number; iteration: SimulatedIteration; events: KvCacheEvent[] }
  | { type: 'heard'; worker: Worker; life: number; events: KvCacheEvent[] }
  | { type: 'death' | 'back'; worker: Worker };

/**
 * Several workers behind a router, without models: each is a Simulation, with the real schedulers and the real cache, whose iterations take
 * the time that a pace says; the router is the real one. Events in the order of their times; the same input gives the same output.
 *
 *   arrival -> route -> worker idle? it iterates -> done at + duration: tokens, next iteration
 *                                                -> heard at + eventDelayMs: the router knows what is cached
 */
export class ClusterSimulation {
  readonly #options: ClusterOptions;
  readonly #router: CacheRouter;
  readonly #queue = new EventQueue<Event>();
  readonly #workers: Worker[];
  readonly #requests: Underway[];
  /** Requests that no worker was there for. */
  readonly #stranded: number[] = [];
  #iterations = 0;
  #contextTokens = 0;

  constructor(options: ClusterOptions, arrivals: readonly ClusterArrival[]) {
    this.#options = options;
    const { contextTokenMs, generationMs } = options.pace;
    const { tokensPerBlock } = options.worker;
    // A request beside another one costs it about a hundred tokens' share of iterations.
    this.#router = new CacheRouter({
      blockTime: tokensPerBlock * contextTokenMs,
      requestTime: 100 * generationMs,
    });
    this.#workers = Array.from({ length: options.workers }, (_, index) => this.#newWorker(`${index}`));
    for (const { name } of this.#workers) this.#router.add(name);
    this.#requests = arrivals.map((arrival) => ({
      ...{ arrival, generated: 0, known: 0, hasBegun: false, worker: -1, attempts: 0 },
      ...{ firstTokenMs: Number.NaN, lastTokenMs: Number.NaN, cachedTokens: 0 },
    }));
    for (const [request, { atMs }] of arrivals.entries())
      this.#queue.push(atMs, { type: 'arrival', request });
    for (const { worker, atMs, backAtMs } of options.deaths ?? []) {
      this.#queue.push(atMs, { type: 'death', worker: this.#workers[worker]! });
      this.#queue.push(backAtMs, { type: 'back', worker: this.#workers[worker]! });
    }
  }

  /** Runs until all requests have ended. @throws Error where a request can never run, or has no worker left */
  run(): ClusterResult {
    for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop())
      this.#handle(next.atMs, next.event);
    if (this.#stranded.length > 0) throw new Error(`${this.#stranded.length} requests found no worker.`);
    const requests = this.#requests.map(({ worker, firstTokenMs, lastTokenMs, cachedTokens, attempts }) => ({
      ...{ worker, firstTokenMs, lastTokenMs, cachedTokens, attempts },
    }));
    return { requests, iterations: this.#iterations, contextTokens: this.#contextTokens };
  }

  #handle(nowMs: number, event: Event): void {
    if (event.type === 'arrival') {
      this.#send(nowMs, event.request);
      return;
    }
    const { worker } = event;
    if (event.type === 'death') this.#die(nowMs, worker);
    if (event.type === 'back') this.#comeBack(nowMs, worker);
    if (!('life' in event) || event.life !== worker.life) return;
    if (event.type === 'heard') this.#router.note(worker.name, event.events);
    else this.#finish(nowMs, worker, event.iteration, event.events);
  }

  #send(nowMs: number, request: number): void {
    const one = this.#requests[request]!;
    const tokens = tokensSoFar(one);
    const worker = this.#choose(request, tokens);
    if (worker === null) {
      this.#stranded.push(request);
      return;
    }
    one.attempts += 1;
    one.hasBegun = false;
    one.known = one.generated;
    worker.requests.add(request);
    const refusal = worker.simulation.arrive({
      requestId: BigInt(request),
      promptLength: tokens.length,
      maxNewTokens: one.arrival.maxNewTokens - one.generated,
      tokens,
    });
    if (refusal !== null) throw new Error(`Request ${request} can never run: ${refusal}`);
    this.#begin(nowMs, worker);
  }

  #choose(request: number, tokens: Int32Array): Worker | null {
    const up = this.#workers.filter(({ isUp }) => isUp);
    const { routing, random, worker } = this.#options;
    if (up.length === 0) return null;
    if (routing === 'random') return up[Math.floor(random() * up.length)]!;
    if (routing === 'fewest-requests') {
      return up.reduce((best, one) => (one.requests.size < best.requests.size ? one : best));
    }
    const hashes = promptHashes({ salt: 0n }, tokens, worker.tokensPerBlock);
    const found = this.#router.route({ id: `${request}`, hashes });
    return found === null ? null : this.#workers[Number(found.worker)]!;
  }

  /** Begins an iteration of a worker that is idle and has something to do. */
  #begin(nowMs: number, worker: Worker): void {
    const { simulation, life } = worker;
    if (worker.isBusy || simulation.active.length === 0) return;
    worker.isBusy = true;
    const iteration = simulation.iterate();
    const { iterationMs, contextTokenMs, generationMs } = this.#options.pace;
    let durationMs = iterationMs;
    for (const { phase, contextBefore, contextAfter } of iteration.steps) {
      if (phase === 'generation') durationMs += generationMs;
      else durationMs += (contextAfter - contextBefore) * contextTokenMs;
    }
    const events = simulation.kvCache.drainEvents();
    this.#queue.push(nowMs + durationMs, { type: 'done', worker, life, iteration, events });
  }

  #finish(
    nowMs: number,
    worker: Worker,
    { steps, finished }: SimulatedIteration,
    events: KvCacheEvent[],
  ): void {
    this.#iterations += 1;
    worker.isBusy = false;
    for (const { requestId, phase, contextBefore, contextAfter, generated } of steps) {
      const one = this.#requests[Number(requestId)]!;
      if (phase === 'context') this.#contextTokens += contextAfter - contextBefore;
      if (!one.hasBegun) {
        one.hasBegun = true;
        if (one.attempts === 1) one.cachedTokens = contextBefore;
      }
      // A request that was paused computes its context once more, which brings no token.
      if (one.known + generated <= one.generated) continue;
      one.generated = one.known + generated;
      this.#noteFirstToken(nowMs, worker, Number(requestId));
    }
    for (const { requestId } of finished) {
      const request = Number(requestId);
      worker.requests.delete(request);
      this.#requests[request]!.lastTokenMs = nowMs - this.#requests[request]!.arrival.atMs;
      this.#router.end(`${request}`);
    }
    if (events.length > 0 && this.#options.routing === 'cache') {
      const { eventDelayMs } = this.#options;
      this.#queue.push(nowMs + eventDelayMs, { type: 'heard', worker, life: worker.life, events });
    }
    this.#begin(nowMs, worker);
  }

  #noteFirstToken(nowMs: number, worker: Worker, request: number): void {
    const one = this.#requests[request]!;
    this.#router.firstToken(`${request}`);
    if (!Number.isNaN(one.firstTokenMs)) return;
    one.firstTokenMs = nowMs - one.arrival.atMs;
    one.worker = Number(worker.name);
  }

  #die(nowMs: number, worker: Worker): void {
    if (!worker.isUp) return;
    worker.isUp = false;
    worker.isBusy = false;
    worker.life += 1;
    this.#router.remove(worker.name);
    const lost = [...worker.requests];
    worker.requests.clear();
    for (const request of lost) this.#send(nowMs, request);
  }

  #comeBack(nowMs: number, worker: Worker): void {
    if (worker.isUp) return;
    worker.isUp = true;
    worker.simulation = this.#newSimulation();
    this.#router.add(worker.name);
    for (const request of this.#stranded.splice(0)) this.#send(nowMs, request);
  }

  #newWorker(name: string): Worker {
    const simulation = this.#newSimulation();
    return { name, simulation, isBusy: false, isUp: true, life: 0, requests: new Set() };
  }

  #newSimulation(): Simulation {
    return new Simulation({ ...this.#options.worker, enableBlockReuse: true, maxEvents: MOST_EVENTS });
  }
}

/** The prompt and what was generated behind it, made up: unlike any other's. */
function tokensSoFar({ arrival: { tokens, atMs }, generated }: Underway): Int32Array {
  if (generated === 0) return tokens;
  const longer = new Int32Array(tokens.length + generated);
  longer.set(tokens);
  for (let index = 0; index < generated; index += 1) {
    longer[tokens.length + index] = -1 - ((Math.imul(Math.floor(atMs * 1000), 0x9e3779b1) ^ index) >>> 2);
  }
  return longer;
}
