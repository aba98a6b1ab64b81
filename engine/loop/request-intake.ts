import { messageOf } from '../../base/error-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../../scheduler/admission.js';
import { validateRequest, whyIdIsInvalid } from '../intake/request-validation.js';
import type { ResponseWriter } from '../intake/response-writer.js';
import type { ActiveRequests } from '../request/active-requests.js';
import { LlmRequest } from '../request/llm-request.js';
import type { RequestSpec } from '../request/request-spec.js';
import type { ReturnedLogitsBudget } from '../request/returned-logits.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { LoopEnvironment, LoopOptions } from './loop-options.js';
import type { IterationCounts } from './loop-statistics.js';

/** Where requests come in: each becomes active or is refused with the reason as its final response. */
export class RequestIntake {
  readonly #options: LoopOptions;
  readonly #limits: AdmissionLimits;
  readonly #world: LoopEnvironment;
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #logitsBudget: ReturnedLogitsBudget;
  readonly #responses: ResponseWriter;
  readonly #guided: GuidedDecoding;
  /** Names that requests can give; null: the scheme has no post-processors. */
  readonly #postProcessors: readonly string[] | null;
  readonly #whyNoDrafts: string | undefined;
  #isDraining = false;

  constructor(
    options: LoopOptions,
    limits: AdmissionLimits,
    world: LoopEnvironment,
    active: ActiveRequests<LlmRequest>,
    logitsBudget: ReturnedLogitsBudget,
    responses: ResponseWriter,
    guided: GuidedDecoding,
  ) {
    this.#options = options;
    this.#limits = limits;
    this.#world = world;
    this.#active = active;
    this.#logitsBudget = logitsBudget;
    this.#responses = responses;
    this.#guided = guided;
    const { modelType } = options;
    this.#postProcessors = modelType === 'V1' ? null : (world.postProcessors?.names ?? []);
    this.#whyNoDrafts =
      modelType === 'V1' ? 'V1 draws one token a step for each slot of its batch' : undefined;
  }

  /** Requests that could be taken now. */
  get freePlaces(): number {
    const { maxNumSequences, maxWaitingRequests } = this.#options;
    const places = maxNumSequences - this.#active.size;
    if (maxWaitingRequests === undefined) return places;
    let waiting = 0;
    for (const { timing } of this.#active.ordered) if (timing.numIterations === 0) waiting++;
    return Math.max(0, Math.min(places, maxWaitingRequests - waiting));
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** From now on new requests are refused; what is active goes on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Asks for as many requests as there are places. */
  receive(counts: IterationCounts): void {
    const max = this.#isDraining ? 0 : this.freePlaces;
    const requests = this.#world.callbacks.getInferenceRequests(max);
    for (const [index, request] of requests.entries()) {
      // No request but a sign, whenever it comes and however often: it has no answer.
      if (request.requestId === this.#options.terminateReqId) {
        this.drain();
        continue;
      }
      const refusal = this.#whyIdIsRefused(request) ?? this.#whyThereIsNoPlace(index, max);
      if (refusal !== null) this.#refuse(request, refusal);
      else this.#admit(request, counts);
    }
  }

  #whyIdIsRefused({ requestId }: InferenceRequest): string | null {
    if (!this.#active.has(requestId)) return whyIdIsInvalid(requestId);
    return `A request with the id ${requestId} is being processed; this one is refused and that one goes on.`;
  }

  #whyThereIsNoPlace(index: number, max: number): string | null {
    if (this.#isDraining) return 'The manager is shutting down and takes no more requests.';
    return index < max
      ? null
      : `Only ${max} requests were asked for; this one came beyond them and is refused.`;
  }

  #admit(request: InferenceRequest, counts: IterationCounts): void {
    try {
      const { vocabSize, hiddenSize } = this.#world.executor;
      const limits = {
        ...this.#options,
        vocabSize,
        hiddenSize,
        attendsToAll: this.#world.kvCache.window === null,
        maxTopLogProbs: Math.min(this.#options.maxTopLogProbs ?? vocabSize, vocabSize),
        postProcessors: this.#postProcessors,
        guides: this.#guided.isAvailable,
        whyNoDrafts: this.#whyNoDrafts,
      };
      const spec = validateRequest(request, limits, this.#world.drawSeed);
      const admitted = new LlmRequest(spec, this.#world.clock(), vocabSize);
      const impossible = whyItCanNeverRun(admitted, this.#limits);
      if (impossible !== null) throw new ParameterError('input_ids', impossible);
      this.#checkLogitsBudget(spec);
      this.#logitsBudget.reserve(spec);
      admitted.ropeRow = this.#world.rope.assign(admitted.endPosition);
      this.#guided.open(admitted);
      this.#active.add(admitted);
      counts.newRequests++;
      counts.newRequestsQueueMs += this.#world.clock() - admitted.timing.arrivalMs;
    } catch (error) {
      this.#refuse(request, messageOf(error), error instanceof ParameterError);
    }
  }

  #checkLogitsBudget(spec: RequestSpec): void {
    const refusal = this.#logitsBudget.whyRefused(spec);
    if (refusal === null) return;
    if (!refusal.isForever) throw new Error(refusal.reason);
    throw new ParameterError(refusal.field, refusal.reason);
  }

  /** A final response with the reason; where not even the id can be used, only the error hook hears of it. */
  #refuse(request: InferenceRequest, why: string, isInvalid = false): void {
    if (whyIdIsInvalid(request.requestId) === null)
      this.#responses.addError(request.requestId, why, isInvalid);
    else this.#world.callbacks.reportError(new Error(why));
  }
}
