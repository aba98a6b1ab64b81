import { counted } from '../../../base/sentences.js';
import { GUIDE_TYPES, type Guide, MAX_GUIDE_LENGTH } from '../../../callbacks/guide.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { ParameterKind } from '../../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../../callbacks/request/parameters.js';
import {
  checkRange,
  DRAWING_TENSORS,
  drawSeed,
  LENGTH_PENALTY_RANGE,
} from '../../../callbacks/sampling-params.js';
import { StopStrings } from '../../../models/tokenizer/stop-strings.js';
import { badWordTokens } from '../../generation/bad-words.js';
import type { AskedRequest } from '../../generation/pictures/seen-request.js';
import type { EngineFields, TextRequest } from '../../generation/text-generation.js';
import { checkTextLength, promptLimit } from '../../generation/text-length.js';
import type { TextModel } from '../../generation/text-model.js';
import { MAX_CHOICES } from '../../generation/word-limits.js';
import type { AdapterSet } from '../adapters/model-adapters.js';
import { adapterFields } from './given-adapter.js';
import type { GivenInputs } from './given-inputs.js';
import { type PicturedPrompt, picturedPrompt } from './given-pictures.js';
import { logitBiasOf, wordList, wordTexts } from './given-words.js';
import type { TextInputName } from './text-inputs.js';

/** What a request for tensors asks of a model that generates text. */
export interface Generation {
  /** The engine's request, all but whose it is. */
  request: TextRequest;
  /** Answers to the prompt: sequences, or beams. */
  count: number;
  /** Tokens that each sequence has generated before, elsewhere. */
  known: readonly Int32Array[];
  /** The prompt came as tokens. */
  isOfTokens: boolean;
  isStreamed: boolean;
  /** Of output_ids, where answers are of different lengths. */
  padId: number;
  /** output_ids are the generated tokens alone. */
  excludesInput: boolean;
  returns: {
    logProbs: boolean;
    topLogProbs: number;
    contextLogits: boolean;
    generationLogits: boolean;
    contextLogProbs: boolean;
    topContextLogProbs: number;
    perfMetrics: boolean;
    numInputTokens: boolean;
    numOutputTokens: boolean;
  };
}

/** The same before its pictures are seen. */
export type AskedGeneration = Omit<Generation, 'request'> & { request: AskedRequest };

/** How a model takes requests for tensors. */
export interface GenerationOptions {
  model: TextModel;
  /** null: it takes no adapters. */
  adapters: AdapterSet | null;
  /** Most log-probs of a token in addition to its own. */
  maxLogProbs: number;
  /** Of output_ids, where the request says nothing. */
  excludesInput: boolean;
  /** An end_id that is the first of the model's own means all of them, and so does none. */
  endsByItself: boolean;
  /** Name of the caller, by which adapters are kept apart. */
  caller: string;
  signal: AbortSignal | undefined;
  /** Called with the bytes that pictures take until they are seen; may throw. */
  hold: ((bytes: number) => void) | undefined;
}

/** Tokens of an answer to a text, where the request names no limit. */
export const DEFAULT_MAX_TOKENS = 16;
/** Rows of a table of embeddings, or of a draft's logits: more than a context has places. */
const MAX_ROWS = 65_536;

/** @throws InferError; and what the codec refuses */
export async function readGeneration(
  given: GivenInputs,
  options: GenerationOptions,
): Promise<AskedGeneration> {
  const { model, maxLogProbs } = options;
  const isOfTokens = given.has('input_ids');
  if (isOfTokens === given.has('text_input')) {
    throw refused(
      isOfTokens
        ? "'text_input' and 'input_ids' are both given; one of them is expected"
        : "one of 'text_input' and 'input_ids' is expected; neither is given",
    );
  }
  const returns = returnsOf(given, maxLogProbs);
  const prompt = isOfTokens ? { promptTokens: tokensOf(given) } : await promptOf(given, options);
  const words = wordTexts(given, 'bad_words');
  const badWords = [...(await badWordTokens(model.codec, words)), ...wordList(given, 'bad_words_list')];
  const beamWidth = given.number('beam_width') ?? 1;
  const sequences = given.number('num_return_sequences') ?? 1;
  const count = countOf(given, beamWidth, sequences);
  const guide = await guideOf(given, model);
  const known = knownOutputs(given, count);
  const request: AskedRequest = {
    ...prompt,
    promptParam: isOfTokens ? 'input_ids' : 'text_input',
    maxTokens: maxTokensOf(given, isOfTokens),
    ...(await samplingOf(given, model, options.signal)),
    ...promptFields(given),
    stop: new StopStrings(wordTexts(given, 'stop_words')),
    badWords: badWords.length === 0 ? undefined : badWords,
    beams: beamsOf(given, beamWidth),
    sequenceIndex: given.number('first_sequence_index'),
    logProbs: returns.logProbs ? returns.topLogProbs : undefined,
    contextLogProbs: returns.contextLogProbs ? returns.topContextLogProbs : undefined,
    returnContextLogits: returns.contextLogits,
    returnGenerationLogits: returns.generationLogits,
    logitsPostProcessor: given.texts('logits_post_processor_name')?.[0],
    clientId: given.big('client_id'),
    guide,
    guideParam: given.nameOf('guided_decoding_guide'),
    maxDraftLen: given.number('max_draft_len'),
    timeLimitMs: given.number('time_limit_ms'),
    cacheSalt: given.big('cache_salt'),
    engine: engineFields(given, { isOfTokens, known }, options),
  };
  const endId = given.number('end_id') ?? model.endTokens[0] ?? 0;
  return {
    request,
    count,
    known: known.map((row) => withoutEnd(row, request.engine?.endTokenIds)),
    isOfTokens,
    isStreamed: given.is('streaming'),
    padId: padIdOf(given, endId),
    excludesInput: given.has('exclude_input_in_output')
      ? given.is('exclude_input_in_output')
      : options.excludesInput,
    returns,
  };
}

const refused = (message: string) => new InferError(message, 'invalid');

function countOf(given: GivenInputs, beamWidth: number, sequences: number): number {
  for (const [name, value] of [
    ['beam_width', beamWidth],
    ['num_return_sequences', sequences],
  ] as const) {
    if (value >= 1 && value <= MAX_CHOICES) continue;
    throw refused(`'${given.nameOf(name)}' is ${value}; a whole number from 1 to ${MAX_CHOICES} is expected`);
  }
  if (beamWidth > 1 && sequences > 1)
    throw refused(
      `'num_return_sequences' is ${sequences} and 'beam_width' is ${beamWidth}; one of them may be above 1`,
    );
  return Math.max(beamWidth, sequences);
}

function maxTokensOf(given: GivenInputs, isOfTokens: boolean): number {
  const asked = given.number('request_output_len');
  if (asked === undefined && isOfTokens)
    throw refused("'request_output_len' is missing; it is required with 'input_ids'");
  return asked ?? DEFAULT_MAX_TOKENS;
}

/** @throws InferError where input_lengths is no length of the prompt, and for pictures, which have no place among tokens */
function tokensOf(given: GivenInputs): Int32Array {
  if (given.has('image'))
    throw refused("'image' is given with 'input_ids'; pictures are taken with 'text_input'");
  const tokens = given.integers('input_ids')!;
  const length = given.number('input_lengths') ?? tokens.length;
  if (length >= 0 && length <= tokens.length) return tokens.subarray(0, length);
  throw refused(`'input_lengths' is ${length}; 'input_ids' has ${tokens.length} tokens`);
}

async function promptOf(
  given: GivenInputs,
  { model, signal, hold }: GenerationOptions,
): Promise<PicturedPrompt> {
  const [text = ''] = given.texts('text_input')!;
  checkTextLength(text.length, promptLimit(model), 'text_input');
  const images = given.get('image');
  if (images !== undefined && images.data.length > 0)
    return picturedPrompt(model, text, images, { signal, hold });
  return { promptTokens: await model.codec.encodeText(text, signal) };
}

/** Greedy if none of temperature, top-k, top-p and min-p is given, as TensorRT-LLM is. */
async function samplingOf(
  given: GivenInputs,
  model: TextModel,
  signal: AbortSignal | undefined,
): Promise<Partial<TextRequest>> {
  const parameters = parametersOf(given);
  const breakers = wordList(given, 'dry_sequence_breakers');
  const draws = DRAWING_TENSORS.some((name) => given.has(name as TextInputName));
  return {
    ...parameters,
    ...(draws ? {} : { temperature: 0 }),
    dryBreakers: breakers.length === 0 ? undefined : breakers,
    allowedTokens: nonEmpty(given.integers('allowed_token_ids')),
    // Drawn here, so that an answer that ends before the engine does can still report it.
    seed: parameters.seed ?? drawSeed(),
    logitBias: await logitBiasOf(given, model.codec, signal),
    embeddingBias: nonEmpty(given.floats('embedding_bias')),
  };
}

/** Reads the parameters that are given, by the options of programs. */
function parametersOf(given: GivenInputs): Partial<TextRequest> {
  const read: Record<string, unknown> = {};
  for (const { tensor, option, parameter } of NAMED_PARAMETERS) {
    const name = tensor as TextInputName;
    if (!given.has(name)) continue;
    read[option] = OF_KIND[parameter.kind](given, name);
  }
  return read;
}

const number = (given: GivenInputs, name: TextInputName) => given.number(name);
const OF_KIND: Readonly<Record<ParameterKind, (given: GivenInputs, name: TextInputName) => unknown>> = {
  number,
  integer: number,
  flag: (given, name) => given.is(name),
  key: (given, name) => given.big(name),
};

/** An array without elements says nothing, as in requests of clients that always send it. */
function nonEmpty<T extends { length: number }>(values: T | undefined): T | undefined {
  return values === undefined || values.length === 0 ? undefined : values;
}

function promptFields(given: GivenInputs): Partial<TextRequest> {
  const table = given.rows('prompt_embedding_table', MAX_ROWS);
  const rows = given.number('prompt_vocab_size');
  if (rows !== undefined && !(rows >= 0 && rows <= (table?.length ?? 0)))
    throw refused(`'prompt_vocab_size' is ${rows}; 'prompt_embedding_table' has ${table?.length ?? 0} rows`);
  return {
    promptEmbeddings: table && nonEmpty(table.slice(0, rows)),
    positionIds: nonEmpty(given.integers('position_ids')),
  };
}

/** Undefined for one beam, with which both numbers are checked too: they change nothing then, but an invalid value is a mistake. */
function beamsOf(given: GivenInputs, width: number): TextRequest['beams'] {
  const early = given.number('early_stopping') ?? 1;
  if (early < 0)
    throw refused(`'early_stopping' is ${early}; 0 (no), 1 (yes) or a greater number (never) is expected`);
  const lengthPenalty = given.number('len_penalty') ?? 0;
  checkRange('len_penalty', lengthPenalty, LENGTH_PENALTY_RANGE);
  if (width === 1) return undefined;
  return { width, lengthPenalty, earlyStopping: early > 1 ? 'never' : early === 1 };
}

function padIdOf(given: GivenInputs, endId: number): number {
  const padId = given.number('pad_id') ?? Math.max(endId, 0);
  if (padId >= -1) return padId;
  throw refused(`'${given.nameOf('pad_id')}' is ${padId}; a whole number from -1 is expected`);
}

/** @throws InferError for numbers of log-probs beyond the server's limit */
function returnsOf(given: GivenInputs, maxLogProbs: number): Generation['returns'] {
  const topOf = (name: 'top_log_probs' | 'top_context_log_probs'): number => {
    const value = given.number(name) ?? 0;
    if (value >= 0 && value <= maxLogProbs) return value;
    throw refused(
      `'${name}' is ${value}; this server gives at most ${maxLogProbs} log-probs of each token (--max-logprobs)`,
    );
  };
  const topLogProbs = topOf('top_log_probs');
  const topContextLogProbs = topOf('top_context_log_probs');
  return {
    logProbs: given.is('return_log_probs') || topLogProbs > 0,
    topLogProbs,
    contextLogits: given.is('return_context_logits'),
    generationLogits: given.is('return_generation_logits'),
    contextLogProbs: given.is('return_context_log_probs') || topContextLogProbs > 0,
    topContextLogProbs,
    perfMetrics: given.is('return_perf_metrics'),
    numInputTokens: given.is('return_num_input_tokens'),
    numOutputTokens: given.is('return_num_output_tokens'),
  };
}

/** @throws InferError, GuideError */
async function guideOf(given: GivenInputs, { codec }: TextModel): Promise<Guide | undefined> {
  const type = given.texts('guided_decoding_guide_type')?.[0];
  const guide = given.texts('guided_decoding_guide')?.[0] ?? '';
  if (type === undefined || type === '') {
    if (guide === '') return undefined;
    throw refused("'guided_decoding_guide_type' is missing; 'guided_decoding_guide' is given");
  }
  const known = GUIDE_TYPES.find((one) => one === type);
  if (known === undefined)
    throw refused(
      `'guided_decoding_guide_type' is '${type.slice(0, 64)}'; one of ${GUIDE_TYPES.join(', ')} is expected`,
    );
  if (guide === '' && known !== 'json')
    throw refused(`'guided_decoding_guide' is missing; the type ${known} needs one`);
  if (guide.length > MAX_GUIDE_LENGTH)
    throw refused(
      `'guided_decoding_guide' has ${guide.length} characters; at most ${MAX_GUIDE_LENGTH} are taken`,
    );
  const asked = { type: known, guide };
  await codec.checkGuide?.(asked);
  return asked;
}

function engineFields(
  given: GivenInputs,
  { isOfTokens, known }: Pick<Generation, 'isOfTokens' | 'known'>,
  { model, adapters, endsByItself, caller }: GenerationOptions,
): EngineFields {
  const stopWords = wordList(given, 'stop_words_list');
  const endId = given.number('end_id');
  const isOwn =
    endId === undefined ? !isOfTokens || endsByItself : endsByItself && endId === model.endTokens[0];
  const draft = nonEmpty(given.integers('draft_input_ids'));
  const logits = nonEmpty(given.rows('draft_logits', MAX_ROWS) ?? []);
  return {
    endTokenIds: isOwn ? model.endTokens : endId === undefined || endId === -1 ? [] : [endId],
    ...(stopWords.length === 0 ? {} : { stopWords }),
    ...(draft === undefined ? {} : { draftTokens: draft }),
    ...(logits === undefined ? {} : { draftLogits: logits }),
    ...(known.length === 0 ? {} : { knownOutputIds: known }),
    ...adapterFields(given, adapters, caller),
  };
}

/** Rows of tokens, each as long as it is before its first -1. @throws InferError for more rows than sequences */
function knownOutputs(given: GivenInputs, numSequences: number): Int32Array[] {
  const tensor = given.get('known_output_ids');
  if (tensor === undefined) return [];
  const [count = 0, width = 0] = tensor.shape.slice(-2);
  if (count > numSequences)
    throw refused(
      `'known_output_ids' has ${count} rows; the request generates ${counted(numSequences, 'sequence')}`,
    );
  const tokens = given.integers('known_output_ids')!;
  return Array.from({ length: count }, (_, i) => {
    const row = tokens.subarray(i * width, (i + 1) * width);
    const end = row.indexOf(-1);
    if (end < 0) return row;
    const rest = row.subarray(end).findIndex((token) => token !== -1);
    if (rest < 0) return row.subarray(0, end);
    throw refused(
      `'known_output_ids' holds ${row[end + rest]} at [${i}, ${end + rest}]; -1 is expected there`,
    );
  });
}

/** An end token is no part of the answer. */
function withoutEnd(row: Int32Array, ends: readonly number[] | undefined): Int32Array {
  return row.length > 0 && row.at(-1) === ends?.[0] ? row.subarray(0, -1) : row;
}
