import { performance } from 'node:perf_hooks';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { InferModel } from '../infer-model.js';
import { nsSince } from '../inference-counters.js';
import { WorkerlessModel } from '../model-runs.js';
import { withParameterInputs } from '../texts/parameter-inputs.js';

/** What a part does with a request whose tensors fit. */
export interface PartWork {
  /** A request whose terms.stop is aborted ends with what there is. */
  readonly endsWhenStopped?: true;
  /** Parameters that it knows: those with the name of an input are that input, others are refused. Absent: it looks at none. */
  readonly parameters?: readonly string[];
  /**
   * @param onOver called once, before the listener receives the end @throws for what is refused at once
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
export class PartModel extends WorkerlessModel<AbortController> implements InferModel {
  readonly endsWhenStopped?: true;
  readonly #work: PartWork;

  constructor(options: PartModelOptions) {
    super(options, options.config.model_transaction_policy.decoupled);
    this.#work = options.work;
    if (this.#work.endsWhenStopped) this.endsWhenStopped = true;
  }

  infer(request: InferRequest, on: InferListener): void {
    const { parameters } = this.#work;
    const whole = parameters === undefined ? request : withParameterInputs(this.config, request, parameters);
    const { inputs } = checkedRequest(this.config, whole);
    this.runs.requireOpen();
    request.signal?.throwIfAborted();
    const closing = new AbortController();
    const signal =
      request.signal === undefined ? closing.signal : AbortSignal.any([request.signal, closing.signal]);
    this.runs.add(closing);
    const startMs = performance.now();
    const onOver = (error: InferError | null) => {
      this.runs.leave(closing);
      const totalNs = nsSince(startMs);
      if (error !== null) {
        this.counters.noteFailure(reasonOf(error), totalNs);
        return;
      }
      const times = { inputNs: 0, inferNs: totalNs, outputNs: 0 };
      this.counters.noteExecution(1, times);
      this.counters.noteSuccess(1, totalNs, 0, times);
      request.onTimes?.(times);
    };
    try {
      this.#work.answer({ ...whole, signal }, inputs, this.listener(on, startMs), onOver);
    } catch (error) {
      this.runs.leave(closing);
      throw asInferError(error);
    }
  }

  /** See ModelRuns. */
  close(options: CloseOptions = {}): Promise<void> {
    return this.runs.close(options, (closing, reason) => closing.abort(reason));
  }
}
