import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { followModels, type ModelChange, type ModelDirectory } from '../../serving/model-directory.js';
import type { ServedModel } from '../../serving/served-model.js';
import { HOLDINGS, type MemoryLedger } from '../held-memory.js';
import type { ObservedRequest, RequestObserver } from '../request-observer.js';
import { HTTP_BUCKETS } from './buckets.js';
import { type ModelFamilies, modelFamilies } from './families.js';
import { ModelMetrics, UNCOUNTED } from './model-metrics.js';

export interface HttpExchange {
  handler: string;
  method: string;
  status: number;
  durationMs: number;
}

/** Tokens up to which lengths are told apart where no model says how long its sequences are. */
const LONGEST_UNKNOWN = 131_072;

/** Milliseconds between two looks at the event loop's lag: often enough to see it, too seldom to cost anything. */
const LAG_PRECISION_MS = 50;

/**
 * Prometheus metrics of the server in one registry: vLLM's names, so that its dashboards work unchanged, those of HTTP,
 * those of the process, and the project's own, which begin with `skein:`.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #families: ModelFamilies;
  readonly #models = new Map<string, ModelMetrics>();
  /** Of each of them, what ends the hearing of its engine's steps. */
  readonly #leave = new Map<string, () => void>();
  readonly #httpRequests = new Counter({
    name: 'http_requests_total',
    help: 'HTTP requests, by the hundred of their status',
    labelNames: ['handler', 'method', 'status'] as const,
    registers: [this.#registry],
  });
  readonly #httpResponses = new Counter({
    name: 'skein:http_responses_total',
    help: 'HTTP responses by their status',
    labelNames: ['handler', 'status'] as const,
    registers: [this.#registry],
  });
  readonly #httpDuration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'HTTP requests to their last byte',
    labelNames: ['handler', 'method'] as const,
    buckets: HTTP_BUCKETS,
    registers: [this.#registry],
  });
  readonly #refusals = new Counter({
    name: 'skein:requests_refused_total',
    help: 'Requests answered with an error before anything of an answer, by the error code',
    labelNames: ['code'] as const,
    registers: [this.#registry],
  });
  readonly #stalledReaders = new Counter({
    name: 'skein:stalled_readers_total',
    help: 'Clients that were cut off because they did not read their answer',
    registers: [this.#registry],
  });

  readonly #heldMemory = new Gauge({
    name: 'skein:held_memory_bytes',
    help: 'Memory that clients make the server hold, by estimate: of requests with their answers, and of stored responses',
    labelNames: ['holding'] as const,
    registers: [this.#registry],
  });
  readonly #heldMemoryLimit = new Gauge({
    name: 'skein:held_memory_limit_bytes',
    help: 'What all of it may be; requests beyond it are refused with the error code memory_full',
    registers: [this.#registry],
  });
  #ledger: MemoryLedger | null = null;

  /**
   * @param models that are observed as they come and go. A histogram has the same buckets for each: of tokens, up to the longest
   *   sequence of those that are there now. What is longer in a model that comes later counts beyond the last bucket.
   */
  constructor(models: ModelDirectory, options: { process?: boolean } = {}) {
    const longest = Math.max(0, ...models.list().map(({ maxSeqLen }) => maxSeqLen));
    this.#families = modelFamilies(this.#registry, longest === 0 ? LONGEST_UNKNOWN : longest);
    followModels(models, (change) => this.#follow(change));
    if (options.process) {
      collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS });
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    for (const model of this.#models.values()) model.collect();
    for (const holding of HOLDINGS) this.#heldMemory.set({ holding }, this.#ledger?.heldFor(holding) ?? 0);
    return this.#registry.metrics();
  }

  /** @throws where no model of this name is served. */
  model(name: string): ModelMetrics {
    const model = this.#models.get(name);
    if (model === undefined) throw new Error(`There are no metrics of a model '${name}'.`);
    return model;
  }

  /** Follows a request that was just accepted; one of a model that was removed meanwhile is not counted. */
  observe({ model, ...request }: ObservedRequest): RequestObserver {
    return this.#models.get(model)?.observe(request) ?? UNCOUNTED;
  }

  #follow({ kind, model }: ModelChange): void {
    if (kind === 'added') this.#add(model);
    else if (kind === 'removed') this.forget(model.id);
    else if (model.state.status === 'ready') this.model(model.id).engineRestarted();
    else this.model(model.id).engineDown();
  }

  #add(model: ServedModel): void {
    const metrics = new ModelMetrics(this.#families, model);
    this.#models.set(model.id, metrics);
    this.#leave.set(
      model.id,
      model.kind === 'generator'
        ? model.statistics.onStats((stats) => metrics.iteration(stats))
        : model.statistics.onStats((batch) => metrics.batch(batch)),
    );
    if (model.state.status !== 'ready') metrics.engineDown();
  }

  /** The series of a model end; it may come again, and is then counted from 0. */
  forget(name: string): void {
    this.#leave.get(name)?.();
    this.#leave.delete(name);
    this.#models.get(name)?.forget();
    this.#models.delete(name);
  }

  httpRequest({ handler, method, status, durationMs }: HttpExchange): void {
    this.#httpRequests.inc({ handler, method, status: `${Math.floor(status / 100)}xx` });
    this.#httpResponses.inc({ handler, status: String(status) });
    this.#httpDuration.observe({ handler, method }, durationMs / 1000);
  }

  /** What is held by this ledger is told from now on. */
  watchMemory(ledger: MemoryLedger): void {
    this.#ledger = ledger;
    this.#heldMemoryLimit.set(ledger.limit);
    // A rate needs a sample from before the first refusal.
    this.#refusals.inc({ code: 'memory_full' }, 0);
  }

  /** A client did not read its answer and was cut off. */
  readerStalled(): void {
    this.#stalledReaders.inc();
  }

  /** @param code of the error; null for one whose parameter says it all. */
  refused(code: string | null): void {
    this.#refusals.inc({ code: code ?? 'invalid_request' });
  }
}
