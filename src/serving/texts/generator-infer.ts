import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { IterationStats } from '../../../callbacks/iteration-stats.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { blindness } from '../../generation/pictures/see-messages.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
import { endModelSpan, modelSpan } from '../model-span.js';
import type { EngineActivity } from './engine-activity.js';
import { type Generating, Generations } from './generations.js';
import { TEXT_PARAMETERS, withParameterInputs } from './parameter-inputs.js';
import { outputOf, textConfig } from './text-config.js';
import { textInputs, tokenOutputs } from './text-inputs.js';

/**
 * A model that generates text, by tensors: text_input to text_output, or input_ids to output_ids, together
 * with those of the engine. Its requests share the engine's iterations with those of every other protocol,
 * and what is counted is what the engine did for all of them.
 */
export class GeneratorInfer implements InferModel {
  readonly kind = 'generator';
  readonly endsWhenStopped = true;
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory = null;
  /** The model and what belongs to it, for its parts in ensembles. */
  readonly generating: Generating;
  readonly #generations: Generations;
  readonly #activity: () => EngineActivity;
  readonly #counters = new InferenceCounters();

  /** @param activity what its engine does */
  constructor(name: string, version: string, generating: Generating, activity: () => EngineActivity) {
    this.version = version;
    this.generating = generating;
    this.#activity = activity;
    const form = { isBatched: false, excludesInput: false, endsByItself: false };
    this.#generations = new Generations(() => generating, form);
    const texts = [
      outputOf('text_output', 'TYPE_STRING', [-1]),
      outputOf('finish_reason', 'TYPE_STRING', [-1]),
    ];
    const { sight, maxSeqLen } = generating.model;
    const input = textInputs(false, (one) => one === 'image' && !sight);
    this.config = textConfig(
      name,
      { max_batch_size: 0, input, output: [...texts, ...tokenOutputs(false)] },
      {
        task: 'generation',
        max_context_tokens: maxSeqLen,
        input_modalities: sight ? 'text,image' : 'text',
      },
    );
  }

  /**
   * An iteration of the engine. The time of all requests together is the sum of the iterations' times, each as often as requests
   * were active in it.
   */
  noteIteration(stats: IterationStats): void {
    const { scheduledRequests, iterationMs, executorMs, completedRequests, activeRequests } = stats;
    const inferNs = 1e6 * executorMs;
    if (scheduledRequests > 0) {
      this.#counters.noteExecution(scheduledRequests, { inputNs: 0, inferNs, outputNs: 0 });
    }
    this.#counters.noteTime(1e6 * iterationMs * activeRequests, inferNs * scheduledRequests);
    this.#counters.noteQueued(stats.newRequests, 1e6 * stats.newRequestsQueueMs);
    if (completedRequests > 0) this.#counters.noteAnswered(completedRequests);
  }

  statistics() {
    return this.#counters.read();
  }

  activity(): ModelActivity {
    const { adapters } = this.generating;
    return {
      ...this.#activity(),
      lastInference: this.#counters.lastInference,
      ...(adapters === null
        ? {}
        : { adapters: { names: adapters.list().map(({ name }) => name), changes: adapters.changes } }),
    };
  }

  failures(): Readonly<Record<FailureReason, number>> {
    return this.#counters.failures();
  }

  infer(request: InferRequest, on: InferListener): void {
    const { model } = this.generating;
    if (!model.sight && request.inputs.some(({ name }) => name === 'image')) throw blindness(model, 'image');
    const whole = withParameterInputs(this.config, request, TEXT_PARAMETERS);
    const { inputs } = checkedRequest(this.config, inFittingShapes(this.config, whole));
    const span = modelSpan(request.trace, this.config, this.version, request.id, performance.now());
    const traced = span === null ? whole : { ...whole, trace: span };
    try {
      this.#generations.infer(this.config.name, traced, inputs, on, (error) => {
        endModelSpan(span, error);
        if (error !== null) this.#counters.noteFailure(reasonOf(error), 0);
      });
    } catch (error) {
      endModelSpan(span, asInferError(error));
      throw error;
    }
  }
}

/**
 * The request with its tensors in the shapes of the configuration, where they differ by a batch dimension of 1 alone: clients of some
 * servers send one, those of others do not.
 *
 *   max_tokens [1, 1] -> [1]        input_ids [5] -> [1, 5]
 */
function inFittingShapes({ input }: Pick<ModelConfig, 'input'>, request: InferRequest): InferRequest {
  const dimsOf = new Map(input.map(({ name, dims }) => [name, dims]));
  const inputs = request.inputs.map((tensor) => fitting(tensor, dimsOf.get(tensor.name)));
  return { ...request, inputs };
}

function fitting(tensor: InferTensor, dims: readonly number[] | undefined): InferTensor {
  const { shape } = tensor;
  if (dims === undefined || shape.length === dims.length) return tensor;
  if (shape.length === dims.length + 1 && shape[0] === 1) return { ...tensor, shape: shape.slice(1) };
  return shape.length === dims.length - 1 && dims[0] === 1 ? { ...tensor, shape: [1, ...shape] } : tensor;
}
