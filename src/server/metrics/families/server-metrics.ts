import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ResponseCache } from '../../../serving/cache/response-cache.js';
import type { InferModel } from '../../../serving/infer-model.js';
import { followModels, type ModelChange, type ModelDirectory } from '../../../serving/model-directory.js';
import type { RateLimits } from '../../../serving/rate-limits.js';
import type { ObservedRequest, RequestObserver } from '../../../serving/request-observer.js';
import { enginesOf, type ServedModel } from '../../../serving/served-model.js';
import { HOLDINGS, type MemoryLedger } from '../../web/memory/held-memory.js';
import type { Quotas } from '../../web/quotas/quotas.js';
import type { HttpExchange, Metrics } from '../metrics.js';
import { ModelMetrics, UNCOUNTED } from '../model-metrics.js';
import type { Targets } from '../scaling/desired-workers.js';
import { TargetWatch } from '../scaling/target-watch.js';
import { adapterFamilies } from './adapter-metrics.js';
import { HTTP_BUCKETS } from './buckets.js';
import { cacheFamilies } from './cache-families.js';
import { MODEL_LABELS, type ModelFamilies, modelFamilies, modelLabels } from './families.js';
import { type GrpcExchange, GrpcMetrics } from './grpc-metrics.js';
import { keyFamilies } from './key-metrics.js';
import { liveGauge } from './live-family.js';
import { pictureFamilies } from './picture-metrics.js';
import { prefillFamilies, routingFamilies, shareFamilies } from './routing-metrics.js';
import { type SocketMessage, SocketMetrics } from './socket-metrics.js';
import { rateLimitFamilies, sequenceFamilies } from './tensor-metrics.js';
import { type ToolServerAsks, toolFamilies } from './tool-metrics.js';
import { tritonFamilies } from './triton-families.js';
import { expectedFamilies, scalingFamilies, workerFamilies } from './worker-metrics.js';

/** Longest sequence that length buckets assume where no model reports its own. */
const LONGEST_UNKNOWN = 131_072;

/**
 * Milliseconds between two measurements of the event loop's lag: often enough to see it, too seldom to cost anything.
 */
const LAG_PRECISION_MS = 50;

/**
 * Prometheus metrics of the server in one registry: with vLLM's names, so that its dashboards work unchanged, those of
 * HTTP and of the process, and the project's own, which begin with `skein:`.
 */
export class ServerMetrics implements Metrics {
  readonly isOn = true;
  readonly #registry = new Registry();
  /** Of what single API keys took. */
  readonly #keys = new Registry();
  readonly #families: ModelFamilies;
  readonly #models = new Map<string, ModelMetrics>();
  /** Functions that stop listening to each model's engine. */
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
  /** Made with the first call: a server without gRPC has none of them. */
  #grpc: GrpcMetrics | null = null;
  /** Made with the first socket. */
  #sockets: SocketMetrics | null = null;
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
  /** null: there are no targets. */
  readonly #watch: TargetWatch | null;

  /**
   * @param models models to observe as they come and go. A histogram has the same buckets for each: of tokens, up to
   * the longest sequence of the models at the start. Longer ones of later models count beyond the last bucket.
   * @param options `process`: those of the process too; `routing`: the models are those of a gateway that sends requests where they are
   * cached; `targets`: times to which those of its requests are held
   */
  constructor(
    models: ModelDirectory,
    options: { process?: boolean; routing?: boolean; targets?: Targets | undefined } = {},
  ) {
    const longest = Math.max(0, ...models.list().map(({ maxSeqLen }) => maxSeqLen));
    this.#families = modelFamilies(this.#registry, longest === 0 ? LONGEST_UNKNOWN : longest);
    followModels(models, (change) => this.#follow(change));
    adapterFamilies(this.#registry, models);
    engineFamilies(this.#registry, models);
    if (options.routing !== undefined) {
      shareFamilies(this.#registry, models);
      expectedFamilies(this.#registry, models);
    }
    workerFamilies(this.#registry, models);
    const { targets } = options;
    this.#watch = targets === undefined ? null : new TargetWatch(models, targets);
    if (this.#watch !== null) scalingFamilies(this.#registry, this.#watch);
    if (options.routing) routingFamilies(this.#registry, models);
    prefillFamilies(this.#registry, models);
    pictureFamilies(this.#registry, models);
    if (options.process) {
      collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS });
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(ofKeys = false): Promise<string> {
    for (const model of this.#models.values()) model.collect();
    for (const holding of HOLDINGS) this.#heldMemory.set({ holding }, this.#ledger?.heldFor(holding) ?? 0);
    const all = withFractions(await this.#registry.metrics());
    return ofKeys ? all + (await this.#keys.metrics()) : all;
  }

  /** Metrics of a model. @throws Error where no model of this name is served. */
  model(name: string): ModelMetrics {
    const model = this.#models.get(name);
    if (model === undefined) throw new Error(`There are no metrics of a model '${name}'.`);
    return model;
  }

  observe({ model, ...request }: ObservedRequest): RequestObserver {
    const observer = this.#models.get(model)?.observe(request) ?? UNCOUNTED;
    return this.#watch?.observe(model, observer) ?? observer;
  }

  #follow({ kind, model }: ModelChange): void {
    if (kind === 'added') this.#add(model);
    else if (kind === 'removed') this.forget(model.id);
    else if (model.state.status === 'ready') this.model(model.id).engineRestarted(model.state.resumed);
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

  /** Ends the series of a model; should it come again, it is counted from 0. */
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

  /** Counts a call of gRPC, from its headers to its status. */
  grpcCall(call: GrpcExchange): void {
    this.#grpc ??= new GrpcMetrics(this.#registry);
    this.#grpc.count(call);
  }

  socketOpened(): void {
    this.#sockets ??= new SocketMetrics(this.#registry);
    this.#sockets.opened();
  }

  socketMessage(direction: SocketMessage): void {
    this.#sockets?.message(direction);
  }

  socketClosed(reason: string): void {
    this.#sockets?.closed(reason);
  }

  /** Reports the memory held by this ledger from now on. */
  watchMemory(ledger: MemoryLedger): void {
    this.#ledger = ledger;
    this.#heldMemoryLimit.set(ledger.limit);
    // A rate needs a sample from before the first refusal.
    this.#refusals.inc({ code: 'memory_full' }, 0);
  }

  /**
   * Observes models that take tensors, under Triton's names.
   * @param models those that are loaded now @param shared what keeps their answers, and what limits their rates; null: nothing does
   */
  watchInference(
    models: () => readonly InferModel[],
    { cache = null, limits = null }: { cache?: ResponseCache | null; limits?: RateLimits | null } = {},
  ): void {
    tritonFamilies(this.#registry, models);
    if (cache !== null) cacheFamilies(this.#registry, models, cache);
    sequenceFamilies(this.#registry, models);
    if (limits !== null) rateLimitFamilies(this.#registry, limits);
  }

  /** Reports what MCP servers were asked. */
  watchTools(servers: { counts(): readonly ToolServerAsks[] }): void {
    toolFamilies(this.#registry, () => servers.counts());
  }

  /** Reports what the requests of each API key have taken. */
  watchKeys(quotas: Pick<Quotas, 'totals'>): void {
    keyFamilies(this.#keys, () => quotas.totals());
  }

  readerStalled(): void {
    this.#stalledReaders.inc();
  }

  refused(code: string | null): void {
    this.#refusals.inc({ code: code ?? 'invalid_request' });
  }
}

/**
 * Bounds of buckets that are whole numbers, written as Prometheus' other clients and its release 3 write them
 * (`le="1.0"`): dashboards choose a bucket by its text, and Prometheus 2 keeps the text that it gets.
 */
function withFractions(text: string): string {
  return text.replace(/([{,]le="\d+)"/g, '$1.0"');
}

/** The engines that answer for each model, as they are when the metrics are read. */
function engineFamilies(registry: Registry, models: ModelDirectory): void {
  liveGauge(registry, {
    name: 'skein:engines',
    help: 'Engines that answer for the model, by fingerprint: more than one fingerprint means different answers',
    labelNames: [...MODEL_LABELS, 'system_fingerprint'],
    read: () =>
      models
        .list()
        .flatMap((model) =>
          model.kind !== 'generator'
            ? []
            : [...enginesOf(model)].map(([system_fingerprint, count]) => [
                { ...modelLabels(model.id), system_fingerprint },
                count,
              ]),
        ),
  });
}
