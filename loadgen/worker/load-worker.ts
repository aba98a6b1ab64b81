import type { Dispatcher } from 'undici';
import type { Backend } from '../backends/backend.js';
import { createBackend } from '../backends/index.js';
import { monotonicMs } from '../clock.js';
import type { Outcome } from '../outcomes.js';
import { emptyRecord, type RequestRecord } from '../records.js';
import type { Message, Sample } from '../samples.js';
import { Connections } from './connections.js';
import { Flight, type FlightObserver, type Order } from './flight.js';
import type { BeginFrame, FromWorker, IssueFrame, StopFrame, ToWorker, WorkerConfig } from './frames.js';
import { Issuer } from './issuer.js';
import { Results } from './results.js';

const NOTHING: readonly Message[] = [];
/** Milliseconds between two checks of time limits. */
const PATROL_MS = 100;

/** Sends requests at their times, or as slots become free, and reports the outcome of each. */
export class LoadWorker implements FlightObserver {
  readonly #config: WorkerConfig;
  readonly #send: (frame: FromWorker) => void;
  readonly #backend: Backend;
  readonly #connections: Connections;
  readonly #results: Results;
  readonly #issuer: Issuer<Order>;
  readonly #headers: readonly string[];
  readonly #flights = new Set<Flight>();
  /** Requests that are due but have no connection. */
  readonly #due: Order[] = [];
  /** Frames of a closed loop that wait for free slots. Their requests are made when a slot is free. */
  #pending: IssueFrame[] = [];
  /** Index in the first of these frames. */
  #nextPending = 0;
  /** Number of free slots of the closed loop; null in an open one. */
  #freeSlots: number | null = null;
  /** Bodies of samples that were sent before, where no part of them changes. */
  readonly #bodies = new WeakMap<Sample, Buffer>();
  readonly #samples = new Map<number, Sample>();
  /** Requests that wait for the time in Retry-After. */
  readonly #retrying = new Set<Order>();
  /** Finished flights for reuse: most of what a request needs is made only once. */
  readonly #spare: Flight[] = [];
  readonly #record: RequestRecord;
  #patrol: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(config: WorkerConfig, send: (frame: FromWorker) => void) {
    this.#config = config;
    this.#send = send;
    this.#backend = createBackend(config.backend);
    this.#connections = new Connections({
      origin: config.origin,
      most: config.maxInFlight,
      keepAlive: config.keepAlive,
      tls: config.tls,
    });
    this.#results = new Results(send, () => ({ inFlight: this.#flights.size, waiting: this.#due.length }));
    this.#issuer = new Issuer((order) => this.#fly(order), config.busyWait);
    this.#headers = Object.entries({ 'content-type': 'application/json', ...config.headers }).flat();
    this.#record = emptyRecord(config.worker);
  }

  get connectionsOpened(): number {
    return this.#connections.opened;
  }

  /** Opens the connections. */
  async prepare(): Promise<void> {
    const { connections, keepAlive } = this.#config;
    const opened = keepAlive ? await this.#connections.warm(connections) : 0;
    this.#patrol = setInterval(() => this.#patrolLimits(), PATROL_MS);
    this.#send({ type: 'ready', connections: opened });
  }

  /** Takes a frame: queues all its requests, and sends those that are due before anything else happens. */
  receive(frame: Exclude<ToWorker, { type: 'exit' }>): void {
    if (frame.type === 'begin') this.#begin(frame);
    else if (frame.type === 'issue') this.#take(frame);
    else if (frame.type === 'stop') this.#stop(frame);
    else {
      this.#results.flush(true);
      this.#send({ type: 'flushed' });
    }
  }

  close(): void {
    if (this.#patrol !== null) clearInterval(this.#patrol);
    this.#issuer.clear();
    this.#connections.close();
  }

  firstPiece(flight: Flight): void {
    this.#results.first(flight.order.request, flight.firstMs - flight.sentMs, flight.firstMs);
  }

  pieces(count: number, nowMs: number, gapMs: number): void {
    this.#results.pieces(count, nowMs, gapMs);
  }

  landed(flight: Flight, isBroken: boolean): void {
    this.#flights.delete(flight);
    this.#connections.release(flight.client, isBroken);
    const next = this.#due.shift();
    if (next !== undefined) this.#fly(next);
  }

  over(flight: Flight, outcome: Outcome, message: string): void {
    this.#goOn(flight, outcome, message);
    if (flight.canFlyAgain) this.#spare.push(flight);
  }

  #goOn(flight: Flight, outcome: Outcome, message: string): void {
    const { order } = flight;
    if (outcome === 'rate_limited' && order.attempts <= this.#config.retries && !this.#isStopped) {
      // The request keeps its place in the schedule, and so the time that it has waited.
      const again = { ...order, attempts: order.attempts + 1 };
      setTimeout(() => this.#again(again), flight.retryAfterMs);
      this.#retrying.add(again);
      return;
    }
    this.#settle(order, outcome, message, flight);
    const next = order.sample.turns[order.turn + 1];
    if (next === undefined || outcome !== 'completed' || this.#isStopped) {
      this.#settleRest(order, `Turn ${order.turn + 1} of the conversation was ${outcome}.`);
      this.#slotFree();
      return;
    }
    this.#issuer.add({
      ...order,
      request: order.request + 1,
      turn: order.turn + 1,
      atMs: flight.endMs + 1000 * (next.thinkSeconds ?? 0),
      earlier: [
        ...order.earlier,
        ...(order.sample.turns[order.turn]!.history ?? []),
        { role: 'user', content: order.sample.turns[order.turn]!.prompt },
        { role: 'assistant', content: flight.reader!.answer },
      ],
      attempts: 1,
    });
  }

  #again(order: Order): void {
    if (this.#retrying.delete(order)) this.#fly(order);
  }

  #begin({ startMs, concurrency }: BeginFrame): void {
    this.#isStopped = false;
    this.#results.begin(startMs);
    this.#freeSlots = concurrency;
    this.#samples.clear();
  }

  #take(frame: IssueFrame): void {
    const { sampleNumbers, samples } = frame;
    if (frame.keepSamples) {
      for (const [i, sample] of samples.entries()) {
        if (sample !== null) this.#samples.set(sampleNumbers[i]!, sample);
      }
    }
    if (this.#freeSlots !== null) this.#pending.push(frame);
    else for (const i of sampleNumbers.keys()) this.#issuer.add(this.#order(frame, i));
    this.#fillSlots();
  }

  #order({ requests, sampleNumbers, samples, atMs }: IssueFrame, i: number): Order {
    const sampleNumber = sampleNumbers[i]!;
    return {
      request: requests[i]!,
      sampleNumber,
      sample: samples[i] ?? this.#samples.get(sampleNumber)!,
      turn: 0,
      atMs: atMs[i] ?? 0,
      earlier: NOTHING,
      attempts: 1,
    };
  }

  #slotFree(): void {
    if (this.#freeSlots === null) return;
    this.#freeSlots++;
    this.#fillSlots();
  }

  #fillSlots(): void {
    while (this.#freeSlots !== null && this.#freeSlots > 0) {
      const frame = this.#pending[0];
      if (frame === undefined) break;
      const order = this.#order(frame, this.#nextPending++);
      if (this.#nextPending === frame.requests.length) this.#dropFrame();
      this.#freeSlots--;
      order.atMs = monotonicMs();
      this.#fly(order);
    }
  }

  #dropFrame(): void {
    this.#pending.shift();
    this.#nextPending = 0;
  }

  #fly(order: Order): void {
    if (this.#isStopped) {
      this.#settle(order, 'not_sent', '', null);
      this.#settleRest(order, '');
      return;
    }
    const client = this.#connections.acquire();
    if (client === null) {
      this.#due.push(order);
      return;
    }
    const { sample, turn } = order;
    const flight = this.#spare.pop() ?? new Flight(this.#backend, this);
    flight.board(order, client, turn + 1 < sample.turns.length);
    this.#flights.add(flight);
    const options: Dispatcher.DispatchOptions = {
      path: this.#backend.path,
      method: 'POST',
      headers: this.#headers as string[],
      body: this.#body(order),
      reset: !this.#config.keepAlive,
    };
    flight.send(options);
  }

  #body({ sample, turn, earlier }: Order): Buffer {
    if (turn > 0) return Buffer.from(this.#backend.body(sample.turns[turn]!, earlier));
    let body = this.#bodies.get(sample);
    if (body === undefined) {
      body = Buffer.from(this.#backend.body(sample.turns[0]!, earlier));
      this.#bodies.set(sample, body);
    }
    return body;
  }

  #patrolLimits(): void {
    const nowMs = monotonicMs();
    const { timeoutMs, stallMs } = this.#config;
    for (const flight of this.#flights) {
      if (nowMs - flight.sentMs > timeoutMs) {
        flight.abort('timed_out', `No end within ${timeoutMs / 1000} s.`);
      } else if (nowMs - flight.activeMs > stallMs) {
        flight.abort('stalled', `No byte for ${stallMs / 1000} s.`);
      }
    }
  }

  #stop({ withdraw, cancel }: StopFrame): void {
    this.#isStopped = true;
    const waiting = this.#pending.flatMap((frame, at) =>
      [...frame.requests.keys()].slice(at === 0 ? this.#nextPending : 0).map((i) => this.#order(frame, i)),
    );
    this.#pending = [];
    this.#nextPending = 0;
    const timed = this.#issuer.clear();
    const late = [...timed.filter(({ turn }) => turn > 0), ...this.#due.splice(0), ...this.#retrying];
    this.#retrying.clear();
    const early = [...waiting, ...timed.filter(({ turn }) => turn === 0)];
    if (!withdraw) late.push(...early);
    for (const order of late) {
      this.#settle(order, 'not_sent', '', null);
      this.#settleRest(order, '');
    }
    if (cancel) for (const flight of [...this.#flights]) flight.abort('cancelled', 'The run was cut off.');
    this.#send({ type: 'stopped', withdrawn: withdraw ? requestsOf(early) : 0 });
  }

  /** Settles the turns after one that failed. */
  #settleRest(order: Order, message: string): void {
    for (let turn = order.turn + 1; turn < order.sample.turns.length; turn++) {
      this.#settle(
        { ...order, turn, request: order.request + turn - order.turn, atMs: Number.NaN },
        'not_sent',
        message,
        null,
      );
    }
  }

  #settle(order: Order, outcome: Outcome, message: string, flight: Flight | null): void {
    const reader = flight?.reader ?? null;
    // One record is refilled each time: making a record would make a dozen number objects.
    const record = this.#record;
    record.request = order.request;
    record.sample = order.sampleNumber;
    record.turn = order.turn;
    record.outcome = outcome;
    record.status = flight?.status ?? 0;
    record.attempts = flight === null ? order.attempts - 1 : order.attempts;
    record.scheduledMs = order.atMs;
    record.sentMs = flight?.sentMs ?? Number.NaN;
    record.firstMs = flight?.firstMs ?? Number.NaN;
    record.lastMs = flight?.lastMs ?? Number.NaN;
    record.endMs = flight?.endMs ?? Number.NaN;
    record.promptTokens = reader?.promptTokens ?? Number.NaN;
    record.completionTokens = reader?.completionTokens ?? Number.NaN;
    record.cachedTokens = reader?.cachedTokens ?? Number.NaN;
    record.pieces = reader?.pieces ?? 0;
    record.streamed = flight?.streamed ?? false;
    this.#results.record(record, message);
  }
}

function requestsOf(orders: readonly Order[]): number {
  return orders.reduce((sum, { sample }) => sum + sample.turns.length, 0);
}
