import { performance } from 'node:perf_hooks';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferOrigin, InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { BatchTimes } from '../../../callbacks/infer/instance-messages.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { EnsemblePlan } from '../../../scheduler/tensors/ensemble-plan.js';
import { checkedRequest } from '../check-request.js';
import { reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel } from '../infer-model.js';
import { nsSince } from '../inference-counters.js';
import { WorkerlessModel } from '../model-runs.js';
import { inEnsemble } from './ensemble-errors.js';
import { type EnsembleParts, EnsembleRun } from './ensemble-run.js';
import { MAX_DEPTH, StepLimit } from './step-limit.js';

/** Requests of one ensemble at once. */
const MAX_REQUESTS = 65_536;

export interface EnsembleModelOptions {
  /** With the transaction policy of its plan. */
  config: ModelConfig;
  plan: EnsemblePlan;
  version: string;
  modelDirectory: string;
  /** A member, as it is now: asked at each request of each step. @throws InferError where it is not ready */
  find: EnsembleParts['find'];
}

/** Several models that look like one: each request goes through them as its tensors come (EnsembleRun). It computes nothing itself. */
export class EnsembleModel extends WorkerlessModel<EnsembleRun> implements InferModel {
  readonly endsWhenStopped = true;
  readonly #parts: EnsembleParts;
  /** Steps of this ensemble where another one's step asks, so that they stay the same for all requests of that step. */
  readonly #origins = new WeakMap<InferOrigin, readonly InferOrigin[]>();

  constructor(options: EnsembleModelOptions) {
    const { config, plan, find } = options;
    super(options, plan.isDecoupled);
    const most = config.ensemble_scheduling?.max_inflight_requests ?? 0;
    this.#parts = { config, plan, limits: plan.steps.map(() => new StepLimit(most)), find };
  }

  infer(request: InferRequest, on: InferListener): void {
    const { inputs, batchSize } = checkedRequest(this.config, request);
    this.#checkRoom(request);
    request.signal?.throwIfAborted();
    const startMs = performance.now();
    const listener = this.listener(on, startMs);
    const onOver = (error: InferError | null, times: BatchTimes) => {
      this.runs.leave(run);
      if (error === null) {
        this.counters.noteExecution(batchSize, times);
        this.counters.noteSuccess(batchSize, nsSince(startMs), 0, times);
        request.onTimes?.(times);
      } else this.counters.noteFailure(reasonOfEnsemble(error), nsSince(startMs));
    };
    const run = new EnsembleRun(this.#parts, request, this.#originsFor(request.origin), listener, onOver);
    this.runs.add(run);
    run.begin(inputs, batchSize);
  }

  #checkRoom({ id, origin }: InferRequest): void {
    const { name } = this.config;
    this.runs.requireOpen();
    if (this.runs.size >= MAX_REQUESTS) {
      const told = `[request id: ${id === '' ? '<id_unknown>' : id}] Exceeds maximum queue size`;
      throw new InferError(told, 'unavailable');
    }
    if ((origin?.depth ?? 0) < MAX_DEPTH) return;
    const deep = new InferError(
      `it lies in ${MAX_DEPTH} ensembles within each other, which are as many as may`,
      'invalid',
    );
    throw inEnsemble(name, deep);
  }

  #originsFor(origin: InferOrigin | undefined): readonly InferOrigin[] {
    const known = origin && this.#origins.get(origin);
    if (known !== undefined) return known;
    const depth = (origin?.depth ?? 0) + 1;
    const origins = this.#parts.plan.steps.map(() => ({ depth }));
    if (origin !== undefined) this.#origins.set(origin, origins);
    return origins;
  }

  /** See ModelRuns. */
  close(options: CloseOptions = {}): Promise<void> {
    return this.runs.close(options, (run, reason) => run.cancel(reason));
  }
}

/** Source: Triton, which counts what a member refuses or fails as OTHER. */
function reasonOfEnsemble(error: InferError): FailureReason {
  return reasonOf(error) === 'CANCELED' ? 'CANCELED' : 'OTHER';
}
