import { InferError } from '../../callbacks/infer/infer-error.js';
import type { InferListener } from '../../callbacks/infer/infer-types.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { FailureReason, ModelActivity, TimeCounts } from './infer-model.js';
import { InferenceCounters, nsSince } from './inference-counters.js';

/** Requests that a model without workers of its own has, until they are over. */
export class ModelRuns<Run> {
  readonly #model: string;
  readonly #runs = new Set<Run>();
  #isClosed = false;
  /** Called when the last request is over. */
  readonly #onIdle: (() => void)[] = [];

  /** @param model its name */
  constructor(model: string) {
    this.#model = model;
  }

  get size(): number {
    return this.#runs.size;
  }

  /** @throws InferError once it is closed */
  requireOpen(): void {
    if (this.#isClosed)
      throw new InferError(`Request for model '${this.#model}', which is unloaded`, 'unavailable');
  }

  add(run: Run): void {
    this.#runs.add(run);
  }

  leave(run: Run): void {
    this.#runs.delete(run);
    if (this.#runs.size === 0) for (const tell of this.#onIdle.splice(0)) tell();
  }

  /** Takes no more requests; resolves when those that were taken are answered, or cancelled. */
  async close({ abort = false, timeoutMs }: CloseOptions, cancel: (run: Run, reason: InferError) => void) {
    this.#isClosed = true;
    const cancelAll = () => {
      const reason = new InferError(`the model '${this.#model}' is unloaded`, 'unavailable');
      for (const run of [...this.#runs]) cancel(run, reason);
    };
    if (abort) cancelAll();
    if (this.#runs.size === 0) return;
    const timer = timeoutMs === undefined ? undefined : setTimeout(cancelAll, timeoutMs);
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    clearTimeout(timer);
  }
}

/** What models without workers of their own have in common: their requests until they are over, and their counts. */
export abstract class WorkerlessModel<Run> {
  readonly kind = 'tensors';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory: string;
  readonly firstResponses?: () => TimeCounts;
  protected readonly counters = new InferenceCounters();
  protected readonly runs: ModelRuns<Run>;

  constructor(
    { config, version, modelDirectory }: { config: ModelConfig; version: string; modelDirectory: string },
    isDecoupled: boolean,
  ) {
    this.config = config;
    this.runs = new ModelRuns(config.name);
    this.version = version;
    this.modelDirectory = modelDirectory;
    if (isDecoupled) this.firstResponses = () => this.counters.firstResponses();
  }

  statistics() {
    return this.counters.read();
  }

  activity(): ModelActivity {
    const { lastInference } = this.counters;
    return { waiting: 0, running: this.runs.size, instances: [], restarts: 0, lastInference };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.counters.failures();
  }

  /** The listener of a request that began then, whose first response is noted where there may be several. */
  protected listener(on: InferListener, startMs: number): InferListener {
    return this.firstResponses === undefined ? on : this.counters.notingFirst(on, () => nsSince(startMs));
  }
}
