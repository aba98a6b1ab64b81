import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferListener, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { IterationStats } from '../../../callbacks/iteration-stats.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { inCallersWords } from '../../generation/refusals.js';
import { generateText, type TextRequest } from '../../generation/text-generation.js';
import { checkTextLength, MAX_UNITS_PER_TOKEN } from '../../generation/text-length.js';
import type { TextModel } from '../../generation/text-model.js';
import type { ModelAdapters } from '../adapters/model-adapters.js';
import { checkedRequest } from '../check-request.js';
import { asInferError, reasonOf } from '../infer-failure.js';
import type { FailureReason, InferModel, ModelActivity } from '../infer-model.js';
import { InferenceCounters } from '../inference-counters.js';
import { endModelSpan, modelSpan } from '../model-span.js';
import type { RunningModel } from '../running-model.js';
import type { EngineActivity } from './engine-activity.js';
import { numberOf, textsOf, textTensor } from './tensor-values.js';
import { inputOf, outputOf, textConfig } from './text-config.js';
import { TextTrace, tracedPieces } from './text-trace.js';

/** Inputs of one number, with the field of a request that each sets. */
const NUMBERS = {
  temperature: ['TYPE_FP32', 'temperature'],
  top_k: ['TYPE_INT32', 'topK'],
  top_p: ['TYPE_FP32', 'topP'],
  repetition_penalty: ['TYPE_FP32', 'repetitionPenalty'],
  presence_penalty: ['TYPE_FP32', 'presencePenalty'],
  frequency_penalty: ['TYPE_FP32', 'frequencyPenalty'],
  min_tokens: ['TYPE_INT32', 'minTokens'],
  seed: ['TYPE_UINT64', 'seed'],
} as const;

const DEFAULT_MAX_TOKENS = 16;

/**
 * A model that generates text, by tensors: `text_input` to `text_output`. Its requests share the engine's iterations with those of
 * every other protocol, and what is counted is what the engine did for all of them.
 */
export class GeneratorInfer implements InferModel {
  readonly kind = 'generator';
  readonly config: ModelConfig;
  readonly version: string;
  readonly modelDirectory = null;
  readonly #model: TextModel;
  readonly #adapters: ModelAdapters | null;
  readonly #activity: () => EngineActivity;
  readonly #counters = new InferenceCounters();

  /** @param activity what its engine does */
  constructor(
    name: string,
    version: string,
    { model, adapters }: Pick<RunningModel<'generator'>, 'model' | 'adapters'>,
    activity: () => EngineActivity,
  ) {
    this.version = version;
    this.#model = model;
    this.#adapters = adapters;
    this.#activity = activity;
    const numbers = Object.entries(NUMBERS).map(([input, [type]]) => inputOf(input, type, true));
    this.config = textConfig(
      name,
      {
        max_batch_size: 0,
        input: [
          inputOf('text_input', 'TYPE_STRING', false),
          inputOf('max_tokens', 'TYPE_INT32', true),
          inputOf('stop_words', 'TYPE_STRING', true, [-1]),
          ...numbers,
        ],
        output: [outputOf('text_output', 'TYPE_STRING', [1]), outputOf('finish_reason', 'TYPE_STRING', [1])],
      },
      { task: 'generation', max_context_tokens: model.maxSeqLen },
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
    const adapters = this.#adapters;
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
    const { inputs } = checkedRequest(this.config, request);
    const model = this.#modelOf(request);
    const span = modelSpan(request.trace, this.config, this.version, request.id, performance.now());
    this.#generate(model, inputs, request, span).then(
      (outputs) => {
        endModelSpan(span, null);
        on.response({ outputs });
        on.end();
      },
      (error: unknown) => {
        const told = asInferError(inCallersWords(error, 'text_input'));
        this.#counters.noteFailure(reasonOf(told), 0);
        endModelSpan(span, told);
        on.fail(told);
      },
    );
  }

  /** The model, or the same with the adapter that the parameter `lora_name` names. @throws InferError invalid, notFound */
  #modelOf({ parameters: { lora_name: name } }: InferRequest): TextModel {
    if (name === undefined) return this.#model;
    if (typeof name !== 'string') {
      throw new InferError(`parameter 'lora_name' of '${this.config.name}' should be a string`, 'invalid');
    }
    const adapter = this.#adapters?.find(name);
    if (adapter !== undefined) return adapter.model;
    throw new InferError(`model '${this.config.name}' has no LoRA adapter '${name}'`, 'notFound');
  }

  async #generate(
    model: TextModel,
    inputs: readonly InferTensor[],
    { id, signal }: InferRequest,
    span: TraceSpan | null,
  ): Promise<InferTensor[]> {
    const given = new Map(inputs.map((input) => [input.name, input]));
    const [text = ''] = textsOf(given.get('text_input')!);
    const { codec, maxInputLen: maxTokens } = model;
    const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
    checkTextLength(text.length, { maxTokens, unitsPerToken }, 'text_input');
    const promptTokens = await codec.encodeText(text, signal);
    const request = { ...fieldsOf(given), promptTokens, promptParam: 'text_input', signal };
    let answer = '';
    let finishReason = '';
    const pieces = generateText(model, request);
    const trace = TextTrace.begin(span ?? undefined, {
      ...request,
      model: this.config.name,
      requestId: id,
      promptTokens: promptTokens.length,
      choices: 1,
    });
    for await (const piece of tracedPieces(pieces, trace)) {
      answer += piece.text;
      finishReason = piece.finishReason ?? '';
    }
    return [textTensor('text_output', [answer]), textTensor('finish_reason', [finishReason])];
  }
}

function fieldsOf(given: ReadonlyMap<string, InferTensor>): Pick<TextRequest, 'maxTokens' | 'stop'> {
  const fields: Record<string, number | bigint> = {};
  for (const [name, [, field]] of Object.entries(NUMBERS)) {
    const tensor = given.get(name);
    if (tensor !== undefined) fields[field] = numberOf(tensor);
  }
  const maxTokens = given.get('max_tokens');
  const stops = given.get('stop_words');
  return {
    ...fields,
    maxTokens: maxTokens === undefined ? DEFAULT_MAX_TOKENS : Number(numberOf(maxTokens)),
    ...(stops === undefined ? {} : { stop: textsOf(stops) }),
  };
}
