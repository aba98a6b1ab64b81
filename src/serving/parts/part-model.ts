import { performance } from 'node:perf_hooks';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity, TimeCounts } from '../infer-model.js';
import { InferenceCounters, nsSince } from '../inference-counters.js';
import { ModelRuns } from '../model-runs.js';
import { withParameterInputs } from '../texts/parameter-inputs.js';

/** What a part does with a request whose tensors fit. */
export interface PartWork {
  /** A request whose terms.stop is aborted ends with what there is. */
  readonly endsWhenStopped?: true;
  /** Parameters that it knows: those with the name of an input are that input, others are refused. Absent: it looks at none. */
  readonly parameters?: readonly string[];
  /**
   * @param onOver called once, before the listener is told of the end @throws for what is refused at once
   */
  answer(
    request: InferRequest,
    inputs: readonly InferTensor[],
    on: InferListener,
    onOver: (error: InferError | null) => void,
  ): void;
}

export interface PartModelOptions {
  config: ModelConfig;
  version: string;
  modelDirectory: string;
  work: PartWork;
}

/** A part of a model of texts, as a model: usable alone, and in any number of ensembles. */
export class PartModel implements InferModel {
  readonly kind = 'tensors';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory: string;
  readonly endsWhenStopped?: true;
  readonly firstResponses?: () => TimeCounts;
  readonly #work: PartWork;
  readonly #counters = new InferenceCounters();
  readonly #runs: ModelRuns<AbortController>;

  constructor({ config, version, modelDirectory, work }: PartModelOptions) {
    this.config = config;
    this.#runs = new ModelRuns(config.name);
    this.version = version;
    this.modelDirectory = modelDirectory;
    this.#work = work;
    if (work.endsWhenStopped) this.endsWhenStopped = true;
    if (config.model_transaction_policy.decoupled)
      this.firstResponses = () => this.#counters.firstResponses();
  }

  statistics() {
    return this.#counters.read();
  }

  activity(): ModelActivity {
    const { lastInference } = this.#counters;
    return { waiting: 0, running: this.#runs.size, instances: [], restarts: 0, lastInference };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  infer(request: InferRequest, on: InferListener): void {
    const { parameters } = this.#work;
    const whole = parameters === undefined ? request : withParameterInputs(this.config, request, parameters);
    const { inputs } = checkedRequest(this.config, whole);
    this.#runs.requireOpen();
    request.signal?.throwIfAborted();
    const closing = new AbortController();
    const signal =
      request.signal === undefined ? closing.signal : AbortSignal.any([request.signal, closing.signal]);
    this.#runs.add(closing);
    const startMs = performance.now();
    const onOver = (error: InferError | null) => {
      this.#runs.leave(closing);
      const totalNs = nsSince(startMs);
      if (error !== null) {
        this.#counters.noteFailure(reasonOf(error), totalNs);
        return;
      }
      const times = { inputNs: 0, inferNs: totalNs, outputNs: 0 };
      this.#counters.noteExecution(1, times);
      this.#counters.noteSuccess(1, totalNs, 0, times);
      request.onTimes?.(times);
    };
    const listener =
      this.firstResponses === undefined ? on : this.#counters.notingFirst(on, () => nsSince(startMs));
    try {
      this.#work.answer({ ...whole, signal }, inputs, listener, onOver);
    } catch (error) {
      this.#runs.leave(closing);
      throw asInferError(error);
    }
  }

  /** See ModelRuns. */
  close(options: CloseOptions = {}): Promise<void> {
    return this.#runs.close(options, (closing, reason) => closing.abort(reason));
  }
}
