import { closestName } from '../../base/did-you-mean.js';
import { MAX_INT32 } from '../../base/int32.js';
import { input, type NamedText, option, says } from '../../base/named-text.js';
import { GUIDE_TYPES, type Guide, type GuideType, MAX_GUIDE_LENGTH } from '../../callbacks/guide.js';
import { REQUEST_FIELDS } from '../../callbacks/request/fields.js';
import { NAMED_PARAMETERS } from '../../callbacks/request/parameters.js';
import { readRetention } from '../../callbacks/retention-inputs.js';
import {
  checkRange,
  DRAWING_TENSORS,
  isGreedy,
  type NumberParam,
  ParameterError,
  type Range,
  resolveSamplingParams,
  SAMPLING_RANGES,
  type SamplingParams,
} from '../../callbacks/sampling-params.js';
import { decodeWordList, endingTokens } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { chainValuesOf } from '../decoding/sampler-chain.js';
import type { RequestSpec } from '../sequences/request-spec.js';
import { readDraftLogits, readDraftTokens } from './draft-inputs.js';
import { checkInputTensors } from './input-tensors.js';
import { readKnownOutputs } from './known-outputs.js';
import {
  checkSomeTokenIsLeft,
  readBadWords,
  readBias,
  readDry,
  readReasoningBudget,
} from './logit-inputs.js';
import { ownForm } from './other-forms.js';
import { cacheSaltOf, type PromptLimits, readPromptInputs } from './prompt-inputs.js';
import { checkCombinations } from './refused-combinations.js';
import { readSequences } from './sequence-inputs.js';
import { readBool, readInt, readText } from './tensor-values.js';

export interface RequestLimits extends PromptLimits {
  maxBeamWidth: number;
  maxTopLogProbs: number;
  /** Names of the available logits post-processors; null: the batching scheme has none. Default: none are available. */
  postProcessors?: readonly string[] | null;
  /** Reason why no request of this engine can bring a draft; absent: requests can. */
  whyNoDrafts?: string | undefined;
  /** True if answers can be guided. Default: they cannot. */
  guides?: boolean;
  /** Reason why this engine takes no adapters; null or absent: it takes them, and the caller reads them. */
  whyNoAdapters?: NamedText | null;
}

/**
 * Reads and checks the tensors of a request. Throws a ParameterError naming field, value and limit. A request that
 * gives none of DRAWING_TENSORS is greedy. `drawSeed` is called for a seed
 * if the request gives none.
 */
export function validateRequest(
  request: InferenceRequest,
  limits: RequestLimits,
  drawSeed: () => bigint,
): RequestSpec {
  checkFields(request);
  const inputs = ownForm(checkInputTensors(request.inputs, limits));
  const maxNewTokens = readInt(inputs, 'request_output_len', undefined, 1, MAX_INT32);
  const prompt = readPromptInputs(inputs, limits, maxNewTokens);
  const endId = readInt(inputs, 'end_id', -1, -1, limits.vocabSize - 1);
  const stopWords = readStopWords(inputs);
  const badWords = readBadWords(inputs, limits.vocabSize);
  const bias = readBias(inputs, limits.vocabSize);
  checkSomeTokenIsLeft(inputs, badWords, bias, limits.vocabSize);
  const sampling = readSampling(inputs);
  const sequences = readSequences(inputs, limits.maxBeamWidth);
  checkCombinations(inputs);
  const { vocabSize } = limits;
  const { minLength } = sampling;
  const ends = { maxNewTokens, minLength, endId, stopWords };
  const known = readKnownOutputs(inputs, { ...sequences, ...ends, vocabSize });
  const ending = endingTokens(endId, stopWords, limits.vocabSize);
  const streaming = readStreaming(request, inputs);
  const context = readContextReturns(inputs, limits.maxTopLogProbs, known !== null);
  return {
    requestId: request.requestId,
    ...prompt,
    maxNewTokens,
    sampling: { ...sampling, seed: sampling.seed ?? drawSeed() },
    chain: isGreedy(sampling) ? null : chainValuesOf(sampling),
    dry: readDry(inputs, sampling, vocabSize),
    reasoningBudget: readReasoningBudget(inputs, vocabSize),
    endId,
    padId: readInt(inputs, 'pad_id', Math.max(endId, 0), -1, MAX_INT32),
    stopWords,
    badWords,
    bias,
    endingTokens: ending,
    ...sequences,
    known,
    firstSequenceIndex: readInt(inputs, 'first_sequence_index', 0, 0, MAX_INT32),
    streaming,
    returnLogProbs: readBool(inputs, 'return_log_probs'),
    topLogProbs: readInt(inputs, 'top_log_probs', 0, 0, limits.maxTopLogProbs),
    ...context,
    // Beams are answered whole, again in every iteration.
    returnContextProgress: context.returnContextProgress && streaming && sequences.beams === null,
    returnGenerationLogits: readBool(inputs, 'return_generation_logits'),
    priority: readPriority(request.priority),
    arrivalTimeMs: readArrivalTime(request.arrivalTimeMs),
    timeLimitMs: inputs.time_limit_ms ? readInt(inputs, 'time_limit_ms', undefined, 1, MAX_INT32) : null,
    cacheSalt: cacheSaltOf((inputs.cache_salt?.data[0] as bigint | undefined) ?? 0n, prompt),
    retention: readRetention(inputs),
    postProcessor: readPostProcessor(inputs, limits.postProcessors),
    draftTokens: readDraftTokens(inputs, limits),
    draftLogits: readDraftLogits(inputs, limits.vocabSize),
    maxDraftLen: inputs.max_draft_len ? readInt(inputs, 'max_draft_len', undefined, 0, MAX_INT32) : null,
    guide: readGuide(inputs, { isAvailable: limits.guides ?? false, endingTokens: ending }),
    clientId: (inputs.client_id?.data[0] as bigint | undefined) ?? null,
    // Positions found in the cache have no logits.
    reusesBlocks: !context.returnContextLogits && !context.returnContextLogProbs,
  };
}

/**
 * `wasTold`: the first response has already been sent, elsewhere, with the prompt's results; they are not sent again.
 */
function readContextReturns(
  inputs: Record<string, Tensor>,
  maxTopLogProbs: number,
  wasTold: boolean,
): Pick<
  RequestSpec,
  'returnContextLogits' | 'returnContextLogProbs' | 'topContextLogProbs' | 'returnContextProgress'
> {
  const logits = readBool(inputs, 'return_context_logits');
  const logProbs = readBool(inputs, 'return_context_log_probs');
  const numTop = readInt(inputs, 'top_context_log_probs', 0, 0, maxTopLogProbs);
  return {
    returnContextLogits: logits && !wasTold,
    returnContextLogProbs: (logProbs || numTop > 0) && !wasTold,
    topContextLogProbs: wasTold ? 0 : numTop,
    returnContextProgress: readBool(inputs, 'return_context_progress') && !wasTold,
  };
}

function readArrivalTime(arrivalTimeMs: unknown): number | null {
  if (arrivalTimeMs === undefined) return null;
  if (typeof arrivalTimeMs === 'number' && Number.isFinite(arrivalTimeMs)) return arrivalTimeMs;
  throw new ParameterError(
    'arrivalTimeMs',
    says`${input('arrivalTimeMs')} is ${String(arrivalTimeMs)}; it must be a number of milliseconds since the epoch.`,
  );
}

function readStopWords({ stop_words_list: words }: Record<string, Tensor>): Int32Array[] {
  return words ? decodeWordList('stop_words_list', words.shape, words.data as Int32Array) : [];
}

const POST_PROCESSOR = 'logits_post_processor_name';

/** Name of the post-processor; null if the request names none: an empty name does not count. */
function readPostProcessor(
  inputs: Record<string, Tensor>,
  names: readonly string[] | null = [],
): string | null {
  const name = readText(inputs, POST_PROCESSOR);
  if (name === null || name === '') return null;
  if (names === null) {
    throw new ParameterError(
      POST_PROCESSOR,
      says`${input(POST_PROCESSOR)} is refused: V1 has no logits post-processors.`,
      'unsupported',
    );
  }
  if (names.includes(name)) return name;
  const there =
    names.length === 0
      ? says`none are registered; give the manager ${option('logitsPostProcessors')} or ${option('optionalParams.logitsPostProcessorModule')}`
      : `there are ${names.join(', ')}`;
  throw new ParameterError(
    POST_PROCESSOR,
    says`${input(POST_PROCESSOR)} is ${JSON.stringify(name.slice(0, 64))}, which is no registered logits post-processor; ${there}.`,
  );
}

function readSampling(inputs: Record<string, Tensor>): SamplingParams {
  const given: Record<string, number | boolean | bigint> = {};
  for (const { name, tensor: input, parameter } of NAMED_PARAMETERS) {
    const tensor = inputs[input];
    if (!tensor) continue;
    if (parameter.kind === 'flag') given[name] = readBool(inputs, input);
    else if (parameter.kind === 'key') given[name] = tensor.data[0] as bigint;
    else given[name] = readNumber(input, tensor, SAMPLING_RANGES[name as NumberParam]);
  }
  if (!DRAWING_TENSORS.some((name) => inputs[name])) given.temperature = 0;
  return resolveSamplingParams(given as Partial<SamplingParams>);
}

function readNumber(name: string, { data }: Tensor, range: Range): number {
  const value = data[0] as number;
  checkRange(name, value, range);
  return value;
}

function readPriority(priority: number | undefined): number {
  if (priority === undefined) return REQUEST_FIELDS.priority.default;
  checkRange('priority', priority, REQUEST_FIELDS.priority.range);
  return priority;
}

const FIELDS = Object.keys({
  requestId: true,
  inputs: true,
  priority: true,
  arrivalTimeMs: true,
  isStreaming: true,
} satisfies Record<keyof InferenceRequest, true>);

/** Refuses a field that a request does not have: it would be left out without a word. @throws ParameterError */
function checkFields(request: InferenceRequest): void {
  for (const name of Object.keys(request)) {
    if (FIELDS.includes(name)) continue;
    const meant = closestName(name, FIELDS);
    const hint = meant === null ? `known are ${FIELDS.join(', ')}` : `did you mean ${meant}?`;
    const shown = name.slice(0, 64);
    throw new ParameterError(
      shown,
      `${shown} is not a field of a request; ${hint}${meant === null ? '; tensors belong into inputs.' : ''}`,
    );
  }
}

/** Whether responses are streamed, as the request or its tensor says. @throws ParameterError where they say different things */
function readStreaming(
  { isStreaming }: Pick<InferenceRequest, 'isStreaming'>,
  inputs: Record<string, Tensor>,
): boolean {
  const ofTensor = readBool(inputs, 'streaming');
  if (isStreaming === undefined) return ofTensor;
  if (typeof isStreaming !== 'boolean') {
    throw new ParameterError(
      'isStreaming',
      `isStreaming is ${String(isStreaming)}; true or false is expected.`,
    );
  }
  if (inputs.streaming === undefined || ofTensor === isStreaming) return isStreaming;
  throw new ParameterError(
    'isStreaming',
    `isStreaming is ${isStreaming} and the tensor streaming says ${ofTensor}; one of them is enough.`,
  );
}

const TYPE = 'guided_decoding_guide_type';
const GUIDE = 'guided_decoding_guide';

/**
 * The form that the answer must have, by TensorRT-LLM's names of the tensors; null if none is given. Whether the guide
 * itself can be followed is checked when it is compiled.
 */
function readGuide(
  inputs: Record<string, Tensor>,
  { isAvailable, endingTokens }: { isAvailable: boolean; endingTokens: Int32Array },
): Guide | null {
  const type = readText(inputs, TYPE);
  const guide = readText(inputs, GUIDE);
  if (type === null && guide === null) return null;
  if (!isAvailable) throw refused(TYPE, 'this engine has no tokenizer for guides to be followed with');
  if (type === null)
    throw new ParameterError(TYPE, says`${input(TYPE)} is missing; ${input(GUIDE)} is of no use without it.`);
  if (!GUIDE_TYPES.includes(type as GuideType)) {
    throw new ParameterError(
      TYPE,
      says`${input(TYPE)} is ${JSON.stringify(type.slice(0, 64))}; one of ${GUIDE_TYPES.join(', ')} is expected.`,
    );
  }
  if (guide === null && type !== 'json') {
    throw new ParameterError(GUIDE, says`${input(GUIDE)} is missing; the type ${type} needs one.`);
  }
  if (guide !== null && guide.length > MAX_GUIDE_LENGTH) {
    throw new ParameterError(
      GUIDE,
      says`${input(GUIDE)} is ${guide.length} characters long; at most ${MAX_GUIDE_LENGTH} are supported.`,
    );
  }
  if (endingTokens.length === 0)
    throw refused(
      TYPE,
      says`without ${input('end_id')} the end of an answer that is complete could not be told`,
    );
  return { type: type as GuideType, guide: guide ?? '' };
}

function refused(field: string, reason: NamedText): ParameterError {
  return new ParameterError(field, says`${input(field)} is refused: ${reason}.`, 'unsupported');
}
