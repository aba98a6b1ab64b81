import { performance } from 'node:perf_hooks';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type {
  InferListener,
  InferRequest,
  InferResponse,
  InferTensor,
} from '../../../callbacks/infer/infer-types.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity, TimeCounts } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
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
  readonly #aborts = new Set<AbortController>();
  #isClosed = false;
  readonly #onIdle: (() => void)[] = [];

  constructor({ config, version, modelDirectory, work }: PartModelOptions) {
    this.config = config;
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
    return { waiting: 0, running: this.#aborts.size, instances: [], restarts: 0, lastInference };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  infer(request: InferRequest, on: InferListener): void {
    const { parameters } = this.#work;
    const whole = parameters === undefined ? request : withParameterInputs(this.config, request, parameters);
    const { inputs } = checkedRequest(this.config, whole);
    if (this.#isClosed)
      throw new InferError(`Request for model '${this.config.name}', which is unloaded`, 'unavailable');
    request.signal?.throwIfAborted();
    const closing = new AbortController();
    const signal =
      request.signal === undefined ? closing.signal : AbortSignal.any([request.signal, closing.signal]);
    this.#aborts.add(closing);
    const startMs = performance.now();
    const onOver = (error: InferError | null) => {
      this.#leave(closing);
      const totalNs = 1e6 * (performance.now() - startMs);
      if (error !== null) {
        this.#counters.noteFailure(reasonOf(error), totalNs);
        return;
      }
      const times = { inputNs: 0, inferNs: totalNs, outputNs: 0 };
      this.#counters.noteExecution(1, times);
      this.#counters.noteSuccess(1, totalNs, 0, times);
      request.onTimes?.(times);
    };
    try {
      this.#work.answer({ ...whole, signal }, inputs, this.#heard(on, startMs), onOver);
    } catch (error) {
      this.#leave(closing);
      throw asInferError(error);
    }
  }

  /** The listener, whose first response is noted where there may be several. */
  #heard(on: InferListener, startMs: number): InferListener {
    if (this.firstResponses === undefined) return on;
    let hasResponded = false;
    return {
      response: (response: InferResponse) => {
        if (!hasResponded) this.#counters.noteFirstResponse(1e6 * (performance.now() - startMs));
        hasResponded = true;
        return on.response(response);
      },
      end: () => on.end(),
      fail: (error) => on.fail(error),
    };
  }

  #leave(closing: AbortController): void {
    this.#aborts.delete(closing);
    if (this.#aborts.size === 0) for (const tell of this.#onIdle.splice(0)) tell();
  }

  /** Takes no more requests; resolves when those that were taken are answered, or cancelled. */
  async close({ abort = false, timeoutMs }: CloseOptions = {}): Promise<void> {
    this.#isClosed = true;
    const cancel = () => {
      const reason = new InferError(`the model '${this.config.name}' is unloaded`, 'unavailable');
      for (const closing of [...this.#aborts]) closing.abort(reason);
    };
    if (abort) cancel();
    if (this.#aborts.size === 0) return;
    const timer = timeoutMs === undefined ? undefined : setTimeout(cancel, timeoutMs);
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    clearTimeout(timer);
  }
}
