import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { HOLDINGS, type MemoryLedger } from '../held-memory.js';
import type { ObservedRequest, RequestObserver } from '../request-observer.js';
import { HTTP_BUCKETS } from './buckets.js';
import { type ModelFamilies, modelFamilies } from './families.js';
import { ModelMetrics, type ObservedModel } from './model-metrics.js';

export interface HttpExchange {
  handler: string;
  method: string;
  status: number;
  durationMs: number;
}

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

  /** @param models all that will be observed: a histogram has the same buckets for each. */
  constructor(models: readonly ObservedModel[], options: { process?: boolean } = {}) {
    this.#families = modelFamilies(this.#registry, Math.max(1, ...models.map((model) => model.maxSeqLen)));
    for (const model of models) this.#models.set(model.name, new ModelMetrics(this.#families, model));
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

  /** @throws where no model of this name was given. */
  model(name: string): ModelMetrics {
    const model = this.#models.get(name);
    if (model === undefined) throw new Error(`There are no metrics of a model '${name}'.`);
    return model;
  }

  /** Follows a request that was just accepted. */
  observe({ model, ...request }: ObservedRequest): RequestObserver {
    return this.model(model).observe(request);
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
