import type { SimulatedIteration } from '../../engine/simulation/simulation.js';
import { promptHashes } from '../../kvcache/block-hashes.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { PULL_EXPIRES_MS } from '../nats/work-stream.js';
import { CacheRouter } from '../routing/cache-router.js';
import { ClusterRequests, msOf, nsOf } from './cluster-requests.js';
import type { ClusterArrival, ClusterOptions, ClusterResult } from './cluster-types.js';
import { EventQueue } from './event-queue.js';
import { GatewayLoop } from './gateway-loop.js';
import { RoutedQueue } from './routed-queue.js';
import { type Ask, SimulatedQueue } from './simulated-queue.js';
import { type Begun, SimulatedWorker, type SteadyRun } from './simulated-worker.js';

type Event =
  | { type: 'entered'; request: number }
  | { type: 'death' | 'update' | 'back'; worker: SimulatedWorker }
  | { type: 'noticed'; lost: number[] }
  | { type: 'heard'; worker: SimulatedWorker; life: number; events: KvCacheEvent[] }
  | { type: 'done'; worker: SimulatedWorker; begun: Begun }
  | { type: 'expired'; ask: Ask }
  | { type: 'woken'; worker: SimulatedWorker };

/** Events of one time come in this order, and by their worker, regardless of which was announced first. */
const RANKS = {
  ...{ entered: 0, death: 1, update: 2, back: 3, noticed: 4 },
  ...{ heard: 5, done: 6, expired: 7, woken: 8 },
} as const;

/**
 * Several workers behind a router or a queue, without models: each is a Simulation, with the real schedulers
 * and the real cache, whose iterations take the time that a pace gives; router and queue are the real ones.
 * Events in the order of their times, which are whole nanoseconds, arrivals first; the same input gives the
 * same output.
 *
 *   arrival -> route -> worker idle? it iterates -> done at + duration: tokens, next iteration
 *                                                -> heard at + eventDelayMs: the router knows what is cached
 *
 * Iterations in which each request only becomes a token longer are one event; a request that comes meanwhile cuts it:
 *
 *   | step | step | step | step | step |          5 steady iterations, begun together
 *                    ^ arrival
 *   | step | step | step | with it ...            those that had begun are run, the newcomer is in the next one
 *
 * With a gateway whose loop takes time a request is sent when the loop has read it, and has its tokens when it has read the message with them:
 *
 *   arrival -> loop -> entered: queue -> worker ... done: tokens -> loop -> firstTokenMs
 *
 * What workers have room for is known at once.
 */
export class ClusterSimulation {
  readonly #options: ClusterOptions;
  readonly #router: CacheRouter;
  /** The work queue, and the same as far as it is one whose workers ask; null: there is none. */
  readonly #queue: SimulatedQueue | RoutedQueue | null;
  readonly #pull: SimulatedQueue | null;
  readonly #knowsCaches: boolean;
  /** null: it takes no time, or there is none. */
  readonly #gateway: GatewayLoop | null;
  readonly #events = new EventQueue<Event>();
  readonly #workers: SimulatedWorker[];
  #up: SimulatedWorker[];
  readonly #requests = new ClusterRequests();
  /** Requests that no worker was there for. */
  readonly #stranded: number[] = [];
  readonly #paceNs: { iteration: number; contextToken: number; generation: number };
  #iterations = 0;
  #contextTokens = 0;
  #nowNs = 0;
  #mostWaiting = 0;
  /** Rank of the event that is handled; arrivals have none. */
  #rank = -1;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { workers, worker, routing } = options;
    const { iterationMs, contextTokenMs, generationMs } = options.pace;
    this.#paceNs = {
      iteration: nsOf(iterationMs),
      contextToken: nsOf(contextTokenMs),
      generation: nsOf(generationMs),
    };
    // A request that runs with another one costs it about a hundred tokens' share of iterations.
    const blockTime = worker.tokensPerBlock * contextTokenMs;
    this.#router = new CacheRouter({ blockTime, requestTime: 100 * generationMs });
    const onAsk = (ask: Ask) => this.#push(this.#nowNs + nsOf(PULL_EXPIRES_MS), { type: 'expired', ask });
    this.#pull = routing === 'queue' ? new SimulatedQueue(worker.maxNumRequests, onAsk) : null;
    this.#queue = routing === 'queue-cache' ? this.#routedQueue() : this.#pull;
    const hasGateway = this.#queue !== null && options.gateway !== undefined;
    this.#gateway = hasGateway ? new GatewayLoop(options.gateway!, workers) : null;
    this.#knowsCaches = routing === 'cache' || routing === 'queue-cache';
    this.#workers = Array.from(
      { length: workers },
      (_, index) => new SimulatedWorker(index, worker, this.#knowsCaches),
    );
    this.#up = [...this.#workers];
    for (const one of this.#workers) {
      if (this.#knowsCaches) this.#router.add(one.name);
      this.#queue?.noteWorker(one);
    }
    for (const { worker: index, atMs, backAtMs, kind } of options.outages ?? []) {
      const one = this.#workers[index]!;
      this.#push(nsOf(atMs), { type: kind, worker: one });
      this.#push(nsOf(backAtMs), { type: 'back', worker: one });
    }
  }

  /**
   * Runs until all requests have ended.
   * @param arrivals in the order of their times; their prompts are copied as they come @throws Error where a request can never run, or has no worker left
   */
  run(arrivals: Iterable<ClusterArrival>): ClusterResult {
    let latestNs = 0;
    for (const arrival of arrivals) {
      const atNs = nsOf(arrival.atMs);
      if (atNs < latestNs)
        throw new Error(`Request ${this.#requests.results.length} comes before the one in front of it.`);
      latestNs = atNs;
      while (this.#events.nextAt < atNs) this.#handleNext();
      this.#nowNs = atNs;
      this.#rank = -1;
      this.#arrive(atNs, arrival);
    }
    // Workers never cease to ask.
    while (!this.#requests.areAllOver && this.#events.nextAt < Number.POSITIVE_INFINITY) this.#handleNext();
    const numLeft = this.#stranded.length + (this.#queue?.size ?? 0);
    if (numLeft > 0) throw new Error(`${numLeft} requests found no worker.`);
    const { results: requests, generatedTokens, endNs } = this.#requests;
    return {
      ...{ requests, generatedTokens, endMs: msOf(endNs) },
      ...{ iterations: this.#iterations, contextTokens: this.#contextTokens, mostWaiting: this.#mostWaiting },
      gatewayBusyMs: msOf(this.#gateway?.busyNs ?? 0),
    };
  }

  #push(atNs: number, event: Event): void {
    this.#events.push(atNs, event, this.#rankOf(event.type, 'worker' in event ? event.worker : null));
  }

  #rankOf(type: Event['type'], worker: SimulatedWorker | null): number {
    const { length } = this.#workers;
    return RANKS[type] * (length + 1) + (worker?.index ?? length);
  }

  #handleNext(): void {
    const { at: nowNs, event } = this.#events.pop()!;
    this.#nowNs = nowNs;
    this.#rank = this.#rankOf(event.type, 'worker' in event ? event.worker : null);
    switch (event.type) {
      case 'entered':
        this.#enter(nowNs, event.request);
        return;
      case 'death':
      case 'update':
        this.#end(nowNs, event.worker, event.type);
        return;
      case 'back':
        this.#comeBack(nowNs, event.worker);
        return;
      case 'noticed':
        for (const request of event.lost) this.#send(nowNs, request);
        this.#deliver(nowNs);
        return;
      case 'heard':
        this.#gateway?.message(nowNs, 0);
        if (event.life === event.worker.life) this.#router.note(event.worker.name, event.events);
        return;
      case 'done':
        // What was cut, or died, has another event or none.
        if (event.worker.begun === event.begun) this.#finish(nowNs, event.worker, event.begun);
        return;
      case 'expired':
        if (this.#pull!.expire(event.ask)) this.#push(nowNs, { type: 'woken', worker: event.ask.worker });
        return;
      case 'woken':
        this.#pull!.noteWorker(event.worker);
        this.#deliver(nowNs);
    }
  }

  #arrive(atNs: number, arrival: ClusterArrival): void {
    const request = this.#requests.add(atNs, arrival);
    if (this.#gateway === null) this.#enter(atNs, request);
    else this.#push(this.#gateway.request(atNs), { type: 'entered', request });
  }

  #enter(nowNs: number, request: number): void {
    this.#send(nowNs, request);
    this.#deliver(nowNs);
  }

  #send(nowNs: number, request: number): void {
    if (this.#queue !== null) {
      if (this.#requests.hasBeenSent(request)) this.#queue.addAgain(request);
      else this.#queue.add(request, this.#requests.costOf(request));
      this.#mostWaiting = Math.max(this.#mostWaiting, this.#queue.size);
      return;
    }
    const worker = this.#choose(request);
    if (worker !== null) {
      this.#give(nowNs, request, worker);
      return;
    }
    this.#stranded.push(request);
    this.#mostWaiting = Math.max(this.#mostWaiting, this.#stranded.length);
  }

  /** Brings what waits in the queue to workers that have asked. */
  #deliver(nowNs: number): void {
    this.#queue?.deliver((request, worker) => {
      this.#give(nowNs, request, worker);
      this.#queue!.noteWorker(worker);
    });
  }

  #choose(request: number): SimulatedWorker | null {
    const up = this.#up;
    const { routing, random } = this.#options;
    if (up.length === 0) return null;
    if (routing === 'random') return up[Math.floor(random() * up.length)]!;
    if (routing === 'fewest-requests') {
      return up.reduce((best, one) => (one.requests.size < best.requests.size ? one : best));
    }
    return this.#route(request);
  }

  /** The worker where the request costs least. @param mayHave default: all that are there may */
  #route(request: number, mayHave?: (worker: string) => boolean): SimulatedWorker | null {
    const { sequence, length } = this.#requests.tokensSoFar(request);
    const { tokensPerBlock } = this.#options.worker;
    const hashes = promptHashes({ salt: 0n }, sequence.subarray(0, length), tokensPerBlock);
    const found = this.#router.route({ id: `${request}`, hashes }, mayHave);
    return found === null ? null : this.#workers[Number(found.worker)]!;
  }

  #routedQueue(): RoutedQueue {
    const route = (request: number, mayHave: (worker: string) => boolean) => this.#route(request, mayHave)!;
    return new RoutedQueue(this.#options.worker.maxNumRequests, route);
  }

  #give(nowNs: number, request: number, worker: SimulatedWorker): void {
    this.#cut(nowNs, worker);
    const { sequence, length } = this.#requests.tokensSoFar(request);
    this.#requests.noteSent(request);
    worker.requests.add(request);
    const refusal = worker.simulation.arrive({
      requestId: BigInt(request),
      promptLength: length,
      maxNewTokens: this.#requests.tokensLeft(request),
      tokens: sequence,
    });
    if (refusal !== null) throw new Error(`Request ${request} can never run: ${refusal}`);
    this.#begin(nowNs, worker);
  }

  /** Begins an iteration of a worker that is free and has something to do, or several of which nothing but tokens will come. */
  #begin(nowNs: number, worker: SimulatedWorker): void {
    if (worker.begun !== null || worker.isIdle) return;
    const { simulation } = worker;
    const { iteration: iterationNs, contextToken, generation } = this.#paceNs;
    const stepsAll = this.#options.stepsAll || this.#gateway !== null;
    const count = stepsAll ? 0 : simulation.steadyIterations();
    if (count > 0) {
      const members = [...simulation.active];
      const stepNs = iterationNs + members.length * generation;
      this.#beginRun(worker, { beginNs: nowNs, stepNs, count, members, isApplied: false });
      return;
    }
    const iteration = simulation.iterate();
    let durationNs = iterationNs;
    for (const { phase, contextBefore, contextAfter } of iteration.steps) {
      durationNs += phase === 'generation' ? generation : (contextAfter - contextBefore) * contextToken;
    }
    const events = simulation.kvCache.drainEvents();
    worker.begun = { kind: 'iteration', iteration, events };
    this.#push(nowNs + durationNs, { type: 'done', worker, begun: worker.begun });
  }

  #beginRun(worker: SimulatedWorker, run: SteadyRun): void {
    worker.begun = { kind: 'steady', run };
    this.#push(run.beginNs + run.count * run.stepNs, { type: 'done', worker, begun: worker.begun });
  }

  /** A request is about to come: of a steady run only the iterations remain that have begun. */
  #cut(nowNs: number, worker: SimulatedWorker): void {
    const { begun } = worker;
    if (begun?.kind !== 'steady' || begun.run.isApplied) return;
    const { run } = begun;
    const elapsed = (nowNs - run.beginNs) / run.stepNs;
    // Where one ends at this very time, the next one has begun if its worker's turn is over.
    const isBegun = Number.isInteger(elapsed) && this.#rank > this.#rankOf('done', worker);
    const count = Math.min(run.count, Math.max(1, Math.ceil(elapsed) + (isBegun ? 1 : 0)));
    worker.simulation.skipWhileSteady(count);
    this.#beginRun(worker, { ...run, count, isApplied: true });
  }

  #finish(nowNs: number, worker: SimulatedWorker, begun: Begun): void {
    worker.begun = null;
    if (begun.kind === 'steady') {
      const { run } = begun;
      if (!run.isApplied) worker.simulation.skipWhileSteady(run.count);
      this.#iterations += run.count;
      for (const { requestId, generated } of run.members)
        this.#noteTokens(nowNs, worker, Number(requestId), generated);
    } else {
      this.#finishIteration(nowNs, worker, begun.iteration);
      if (begun.events.length > 0) {
        const { eventDelayMs } = this.#options;
        const heard = { type: 'heard', worker, life: worker.life, events: begun.events } as const;
        this.#push(nowNs + nsOf(eventDelayMs), heard);
      }
    }
    this.#begin(nowNs, worker);
    this.#queue?.noteWorker(worker);
    this.#deliver(nowNs);
  }

  #finishIteration(nowNs: number, worker: SimulatedWorker, iteration: SimulatedIteration): void {
    const { steps, finished } = iteration;
    this.#iterations += 1;
    const toldNs = this.#toldAt(nowNs, iteration);
    for (const { requestId, phase, contextBefore, contextAfter, generated } of steps) {
      const request = Number(requestId);
      if (phase === 'context') {
        this.#contextTokens += contextAfter - contextBefore;
        this.#requests.noteContext(request, contextBefore);
      }
      this.#noteTokens(toldNs, worker, request, generated);
    }
    for (const { requestId } of finished) {
      const request = Number(requestId);
      worker.requests.delete(request);
      this.#router.end(`${request}`);
      this.#requests.noteEnd(toldNs, request);
    }
  }

  /** When clients have what an iteration brings: at once, or when the gateway has read its message. */
  #toldAt(nowNs: number, { steps }: SimulatedIteration): number {
    if (this.#gateway === null) return nowNs;
    let tokens = 0;
    for (const { requestId, generated } of steps)
      if (this.#requests.hasNewTokens(Number(requestId), generated)) tokens += 1;
    return tokens === 0 ? nowNs : this.#gateway.message(nowNs, tokens);
  }

  #noteTokens(nowNs: number, worker: SimulatedWorker, request: number, generated: number): void {
    if (this.#requests.noteTokens(nowNs, request, worker.index, generated))
      this.#router.firstToken(`${request}`);
  }

  #end(nowNs: number, worker: SimulatedWorker, kind: 'death' | 'update'): void {
    if (!worker.isUp) return;
    this.#noteLastTokens(nowNs, worker);
    const lost = worker.end();
    this.#up = this.#workers.filter(({ isUp }) => isUp);
    this.#router.remove(worker.name);
    this.#queue?.noteWorker(worker);
    const noticeNs = kind === 'death' ? nsOf(this.#options.noticeMs ?? 0) : 0;
    if (lost.length > 0) this.#push(nowNs + noticeNs, { type: 'noticed', lost });
  }

  /** The tokens of a steady run that had come when its worker ended: what one iteration brings comes at its end. */
  #noteLastTokens(nowNs: number, worker: SimulatedWorker): void {
    const { begun } = worker;
    if (begun?.kind !== 'steady') return;
    const { beginNs, stepNs, count, members, isApplied } = begun.run;
    const ended = Math.min(count, Math.max(0, Math.ceil((nowNs - beginNs) / stepNs) - 1));
    this.#iterations += ended;
    if (ended === 0) return;
    for (const { requestId, generated } of members) {
      const before = isApplied ? generated - count : generated;
      this.#noteTokens(nowNs, worker, Number(requestId), before + ended);
    }
  }

  #comeBack(nowNs: number, worker: SimulatedWorker): void {
    if (worker.isUp) return;
    worker.isUp = true;
    this.#up = this.#workers.filter(({ isUp }) => isUp);
    if (this.#knowsCaches) this.#router.add(worker.name);
    this.#queue?.noteWorker(worker);
    for (const request of this.#stranded.splice(0)) this.#send(nowNs, request);
    this.#deliver(nowNs);
  }
}
