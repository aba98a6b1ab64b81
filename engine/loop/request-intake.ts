import { type NamedText, option, says } from '../../base/named-text.js';
import {
  failure,
  failureOf,
  notAskedFor,
  type RequestFailure,
  shuttingDown,
} from '../../callbacks/request-failure.js';
import { refusedId } from '../../callbacks/request-id-error.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../../scheduler/tokens/admission.js';
import { AdapterArrivals } from '../intake/adapter-arrivals.js';
import { type AdapterBase, readAdapterInputs } from '../intake/adapter-inputs.js';
import { validateRequest } from '../intake/request-validation.js';
import type { ResponseWriter } from '../intake/response-writer.js';
import type { AdapterUse } from '../peft/peft-cache-manager.js';
import type { ActiveRequests } from '../request/active-requests.js';
import { LlmRequest } from '../request/llm-request.js';
import type { ReturnedLogitsBudget } from '../request/returned-logits.js';
import { type RequestSpec, wholeSpansOf } from '../sequences/request-spec.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { LoopAdapters, LoopEnvironment, LoopOptions } from './loop-options.js';
import type { IterationCounts } from './loop-statistics.js';

export interface IntakeParts {
  options: LoopOptions;
  /** Limits beyond which a request can never run. */
  limits: AdmissionLimits;
  world: LoopEnvironment;
  active: ActiveRequests<LlmRequest>;
  logitsBudget: ReturnedLogitsBudget;
  responses: ResponseWriter;
  guided: GuidedDecoding;
}

/** Takes requests in: each becomes active or is refused with the reason as its final response. */
export class RequestIntake {
  readonly #parts: IntakeParts;
  /** Names of post-processors that requests can give; null: the scheme has none. */
  readonly #postProcessors: readonly string[] | null;
  readonly #whyNoDrafts: string | undefined;
  readonly #whyNoAdapters: NamedText | null;
  /** null: requests have no adapters. */
  readonly #arrivals: AdapterArrivals | null;
  #isDraining = false;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    const { modelType } = parts.options;
    this.#postProcessors = modelType === 'V1' ? null : (parts.world.postProcessors?.names ?? []);
    this.#whyNoDrafts =
      modelType === 'V1' ? 'V1 draws one token a step for each slot of its batch' : undefined;
    this.#whyNoAdapters = whyNoAdapters(parts.world);
    const { adapters } = parts.world;
    this.#arrivals = adapters === undefined ? null : new AdapterArrivals(baseOf(adapters));
  }

  /** Number of requests that could be taken now. */
  get freePlaces(): number {
    const { maxNumSequences, maxWaitingRequests } = this.#parts.options;
    const places = maxNumSequences - this.#parts.active.size;
    if (maxWaitingRequests === undefined) return places;
    let waiting = 0;
    for (const { timing } of this.#parts.active.ordered) if (timing.numIterations === 0) waiting++;
    return Math.max(0, Math.min(places, maxWaitingRequests - waiting));
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Refuses new requests from now on; active ones go on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Asks for as many requests as there are places. */
  receive(counts: IterationCounts): void {
    const max = this.#isDraining ? 0 : this.freePlaces;
    if (this.#arrivals !== null) this.#arrivals.isBusy = this.#parts.active.size > 0;
    const requests = this.#parts.world.callbacks.getInferenceRequests(max, this.#arrivals);
    for (const [index, request] of requests.entries()) {
      // The terminate id is no request but a signal, at any time and any number of times: it gets no answer.
      if (request.requestId === this.#parts.options.terminateReqId) {
        this.drain();
        continue;
      }
      // A response with a wrong id would end the request that has it, or belong to none.
      const wrongId = refusedId(request.requestId, this.#parts.active);
      if (wrongId !== null) {
        this.#parts.world.callbacks.reportError(wrongId);
        continue;
      }
      const refusal = this.#whyThereIsNoPlace(index, max);
      if (refusal !== null) this.#refuse(request, refusal);
      else this.#admit(request, counts);
    }
  }

  #whyThereIsNoPlace(index: number, max: number): RequestFailure | null {
    if (this.#isDraining) return shuttingDown();
    return index < max ? null : notAskedFor(max);
  }

  #admit(request: InferenceRequest, counts: IterationCounts): void {
    try {
      const { vocabSize, promptRowWidth, turnsByGrid, pictureRule } = this.#parts.world.executor;
      const limits = {
        ...this.#parts.options,
        vocabSize,
        promptRowWidth,
        turnsByGrid,
        pictureRule,
        attendsToAll: this.#parts.world.kvCache.window === null,
        maxTopLogProbs: Math.min(this.#parts.options.maxTopLogProbs ?? vocabSize, vocabSize),
        postProcessors: this.#postProcessors,
        guides: this.#parts.guided.isAvailable,
        whyNoDrafts: this.#whyNoDrafts,
        whyNoAdapters: this.#whyNoAdapters,
      };
      const spec = validateRequest(request, limits, this.#parts.world.drawSeed);
      // This is checked before the request is built, since it may ask for a million sequences.
      const impossible = this.#whyImpossible(spec) ?? this.#parts.logitsBudget.whyRefused(spec);
      if (impossible !== null) {
        this.#refuse(request, impossible);
        return;
      }
      const adapter = this.#useAdapter(request);
      try {
        this.#enter(spec, adapter, counts);
      } catch (error) {
        if (adapter !== null) this.#parts.world.adapters?.cache.release(adapter);
        throw error;
      }
    } catch (error) {
      this.#refuse(request, failureOf(error));
    }
  }

  /** Makes an accepted request active. @param adapter which it uses until it leaves */
  #enter(spec: RequestSpec, adapter: AdapterUse | null, counts: IterationCounts): void {
    const { world, active, guided, limits, logitsBudget } = this.#parts;
    const admitted = new LlmRequest(spec, world.clock(), world.executor.vocabSize, adapter);
    logitsBudget.reserve(spec);
    admitted.ropeRow = world.rope.assign(admitted.endPosition);
    admitted.goOnFromElsewhere(limits);
    if (!admitted.isComplete) guided.open(admitted);
    active.add(admitted);
    counts.newRequests++;
    counts.newRequestsQueueMs += world.clock() - admitted.timing.arrivalMs;
  }

  /**
   * Begins the use of the request's adapter, if it has one. The tensors of its weights are not kept: the cache has a copy of its
   * own. @throws ParameterError, AdapterMissingError
   */
  #useAdapter(request: InferenceRequest): AdapterUse | null {
    const { adapters } = this.#parts.world;
    if (adapters === undefined) return null;
    const arrived = this.#arrivals!.claim(request);
    if (arrived !== null) return adapters.cache.admit(arrived.taskId, arrived.weights, arrived.fingerprint);
    const given = readAdapterInputs(request.inputs, baseOf(adapters));
    return given && adapters.cache.admit(given.taskId, given.weights);
  }

  #whyImpossible(spec: RequestSpec): RequestFailure | null {
    const refusal = whyItCanNeverRun(mostOf(spec), this.#parts.limits);
    return refusal === null ? null : failure('tooLong', refusal.text, refusal.field);
  }

  /** Sends a final response with the reason. */
  #refuse({ requestId }: InferenceRequest, why: RequestFailure): void {
    this.#parts.responses.addError(requestId, why);
  }
}

function baseOf({ cache, model }: LoopAdapters): AdapterBase {
  return { model, maxRank: cache.maxAdapterSize, maxBytes: cache.maxAdapterBytes };
}

/** Reason why requests can have no adapters; null: they can. */
function whyNoAdapters({ executor, adapters }: LoopEnvironment): NamedText | null {
  if (adapters !== undefined) return null;
  return executor.adapters === undefined
    ? says`LoRA adapters need an executor that was opened with room for them; this one (${executor.name}) has none (${option('peftCacheManagerConfig')})`
    : says`LoRA adapters need ${option('peftCacheManagerConfig')}`;
}

/** Greatest size of a request: all of its sequences, of which some may have ended elsewhere, at their greatest length. */
function mostOf(spec: RequestSpec) {
  const { promptTokens, maxNewTokens, numSequences: beamWidth } = spec;
  const lengths = { promptLength: promptTokens.length, maxNewTokens, beamWidth, draftLength: 0 };
  return { ...lengths, wholeSpans: wholeSpansOf(spec) };
}
