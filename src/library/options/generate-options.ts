import { MAX_INT32 } from '../../../base/int32.js';
import {
  COUNT,
  callback,
  isObject,
  numberIn,
  rule,
  SWITCH,
  shown,
  TEXT,
  type Values,
  wholeNumber,
} from '../../../base/option-values.js';
import { REQUEST_FIELDS } from '../../../callbacks/request/fields.js';
import {
  NAMED_PARAMETERS,
  type OptionOf,
  type ParameterName,
} from '../../../callbacks/request/parameters.js';
import { BIAS_MAX, type NumberParam, SAMPLING_RANGES } from '../../../callbacks/sampling-params.js';
import { MAX_SEQUENCES } from '../../../callbacks/token-request.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { toolsFault } from '../../generation/chat-options.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';
import type { GenerateOptions, SeveralOptions } from '../answers.js';
import type { ManyOptions } from '../complete-many.js';

const SEQUENCES = wholeNumber(1, MAX_SEQUENCES);
const { within: WEIGHT } = REQUEST_FIELDS.queueWeight;
const MAX_U64 = 2n ** 64n - 1n;
const MIN_I64 = -(2n ** 63n);

/** `every` would pass over holes. */
const isListOf = (value: unknown, isOne: (item: unknown) => boolean): value is unknown[] =>
  Array.isArray(value) && !value.includes(undefined) && value.every(isOne);

const isStop = (value: unknown) => typeof value === 'string' && value !== '';
const isToken = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INT32;

const isBadWord = (value: unknown) => isStop(value) || (isListOf(value, isToken) && value.length > 0);
const WORDS = rule('a list of texts or lists of token ids, none of them empty', (value) =>
  isListOf(value, isBadWord),
);
const isReasoning = ({ effort, maxTokens, ...others }: Record<string, unknown>) =>
  Object.keys(others).length === 0 &&
  (effort === undefined || typeof effort === 'string') &&
  (maxTokens === undefined || isToken(maxTokens));
const isFile = (value: unknown) =>
  isObject(value) && typeof value.filename === 'string' && typeof value.text === 'string';
const isInfill = (value: unknown) => {
  if (!isObject(value)) return false;
  const { prefix, suffix, prompt = '', extra = [], ...others } = value;
  const areTexts = [prefix, suffix, prompt].every((text) => typeof text === 'string');
  return areTexts && isListOf(extra, isFile) && Object.keys(others).length === 0;
};
const isBias = (value: unknown) =>
  typeof value === 'number' && (Math.abs(value) <= BIAS_MAX || value === -Infinity);
const U64 = rule(
  `a bigint from 0 to ${MAX_U64}`,
  (value) => typeof value === 'bigint' && value >= 0n && value <= MAX_U64,
);

/** A key may be a number too. */
type Ruled = Exclude<ParameterName, 'seed'>;

const PARAMETER_RULES = Object.fromEntries(
  NAMED_PARAMETERS.filter(({ parameter }) => parameter.kind !== 'key').map(({ name, option, parameter }) => [
    option,
    parameter.kind === 'flag' ? SWITCH : numberIn(SAMPLING_RANGES[name as NumberParam]),
  ]),
) as Readonly<Record<OptionOf<Ruled>, Values>>;

const { minTokens, ...SAMPLER_RULES } = PARAMETER_RULES;

export const GENERATE_RULES = {
  prompt: TEXT,
  // readMessages checks the messages themselves.
  messages: rule('a list of messages', Array.isArray),
  infill: rule("an object such as { prefix: 'def add(', suffix: '):' }", isInfill),
  // checkLengths, which knows the vocabulary, checks the tokens themselves.
  promptTokens: rule(
    'an Int32Array or an array of token ids',
    (value) => Array.isArray(value) || value instanceof Int32Array,
  ),
  promptEmbeddings: rule('a list of Float32Arrays', (value) =>
    isListOf(value, (row) => row instanceof Float32Array),
  ),
  positionIds: rule(
    'an Int32Array or a list of positions',
    (value) => value instanceof Int32Array || isListOf(value, isToken),
  ),
  maxTokens: wholeNumber(1, MAX_INT32),
  minTokens,
  stop: rule(
    'a text or a list of texts, none of them empty',
    (value) => isStop(value) || isListOf(value, isStop),
  ),
  stopTokens: rule('a list of token ids', (value) => isListOf(value, isToken)),
  badWords: WORDS,
  includeStop: SWITCH,
  ignoreEos: SWITCH,
  skipSpecialTokens: SWITCH,
  logProbs: wholeNumber(0, MAX_INT32),
  returnGenerationLogits: SWITCH,
  returnContextLogits: SWITCH,
  contextLogProbs: wholeNumber(0, MAX_INT32),
  maxDraftLen: wholeNumber(0, MAX_INT32),
  logitsPostProcessor: rule('a name', (value) => typeof value === 'string'),
  // guideOf checks the content.
  guided: rule("an object such as { json: true } or { regex: '[0-9]+' }", isObject),
  clientId: U64,
  priority: numberIn(REQUEST_FIELDS.priority.range),
  queueKey: TEXT,
  queueWeight: rule(
    `a number above ${WEIGHT.above} and at most ${WEIGHT.max}`,
    (value) => typeof value === 'number' && value > WEIGHT.above && value <= WEIGHT.max,
  ),
  cacheSalt: U64,
  adapter: rule('the name of an adapter', (value) => typeof value === 'string'),
  addGenerationPrompt: SWITCH,
  continueFinalMessage: SWITCH,
  templateVariables: rule('an object', isObject),
  // toolsFault checks the tools themselves.
  tools: rule('a list of tools', Array.isArray),
  toolChoice: rule(
    "'none', 'auto', 'required' or { name: 'a tool' }",
    (value) =>
      ['none', 'auto', 'required'].includes(value as string) ||
      (isObject(value) && typeof value.name === 'string'),
  ),
  parallelToolCalls: SWITCH,
  reasoning: rule(
    "true, false or an object such as { effort: 'low', maxTokens: 200 }",
    (value) => typeof value === 'boolean' || (isObject(value) && isReasoning(value)),
  ),
  timeLimitMs: wholeNumber(1, MAX_INT32),
  signal: SIGNAL,
  ...SAMPLER_RULES,
  dryBreakers: WORDS,
  allowedTokens: rule(
    'a list of token ids',
    (value) => value instanceof Int32Array || isListOf(value, isToken),
  ),
  reasoningBudget: rule(
    'an object such as { tokens: 100, endToken: 5 }',
    (value) =>
      isObject(value) &&
      isToken((value as { tokens?: unknown }).tokens) &&
      isToken((value as { endToken?: unknown }).endToken),
  ),
  logitBias: rule(
    'a Map of token ids to numbers',
    (value) => value instanceof Map && [...value].every(([token, bias]) => isToken(token) && isBias(bias)),
  ),
  embeddingBias: rule('a Float32Array', (value) => value instanceof Float32Array),
  // As on the HTTP routes a number below 0 is one of 64 bits too.
  seed: rule(
    'a whole number of 64 bits, beyond 2^53 as a bigint',
    (value) =>
      Number.isSafeInteger(value) || (typeof value === 'bigint' && value >= MIN_I64 && value <= MAX_U64),
  ),
} satisfies Rules<GenerateOptions>;

/** What people look for in one call, and another one has. */
const OF_OTHER_CALLS: ReadonlyMap<string, { call: string; does: string }> = new Map([
  ...['n', 'bestOf', 'beams'].map((name): [string, { call: string; does: string }] => [
    name,
    { call: 'completeSeveral', does: 'has it, and gives several answers' },
  ]),
  ['stream', { call: 'generate', does: 'gives an answer piece by piece' }],
]);

/** @throws InvalidRequestError for an unknown option, or a value that an option does not take. */
export function checkGenerateOptions(call: string, options: unknown): asserts options is GenerateOptions {
  const fault = optionFault<GenerateOptions>(call, "{ prompt: 'Once upon a time' }", options, GENERATE_RULES);
  const other = fault?.option == null ? undefined : OF_OTHER_CALLS.get(fault.option);
  if (other !== undefined && other.call !== call) {
    const message = `${call} has no option ${JSON.stringify(fault!.option)}; ${other.call} ${other.does}.`;
    throw new InvalidRequestError(message, fault!.option);
  }
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
  const { tools } = options as GenerateOptions;
  const wrongTool = tools === undefined ? null : toolsFault(tools);
  if (wrongTool !== null) throw new InvalidRequestError(wrongTool, 'tools');
}

/** Checks the options and adds defaults. @throws InvalidRequestError as checkGenerateOptions. */
export function checkSeveralOptions(options: unknown): SeveralOptions & { n: number; bestOf: number } {
  if (!isObject(options)) checkGenerateOptions('completeSeveral', options);
  const { n: asked, bestOf: candidates, beams, ...rest } = options as SeveralOptions;
  checkGenerateOptions('completeSeveral', rest);
  const check = (name: string, value: unknown) => {
    if (SEQUENCES.accepts(value)) return;
    throw new InvalidRequestError(`${name} is ${String(value)}; ${SEQUENCES.expected} is expected.`, name);
  };
  if (beams !== undefined)
    check('beams.width', isObject(beams) ? (beams as { width?: unknown }).width : beams);
  if (beams?.width === 1) {
    throw new InvalidRequestError('beams.width is 1; a search needs at least 2 beams.', 'beams');
  }
  const n = asked ?? beams?.width ?? 1;
  const bestOf = candidates ?? beams?.width ?? n;
  check('n', n);
  check('bestOf', bestOf);
  if (beams !== undefined && bestOf !== beams.width) {
    throw new InvalidRequestError(
      'bestOf and beams exclude each other: a search has as many candidates as beams.',
      'bestOf',
    );
  }
  if (n > bestOf) throw new InvalidRequestError(`n is ${n}; there are only ${bestOf} to choose from.`, 'n');
  return { ...rest, n, bestOf, ...(beams === undefined ? {} : { beams }) };
}

/** @throws InvalidRequestError as checkGenerateOptions. */
export function checkCloseOptions(options: unknown): void {
  const fault = optionFault<{ abort?: boolean }>('close', '{ abort: true }', options, { abort: SWITCH });
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
}

const RULES: Rules<ManyOptions> = { maxInFlight: COUNT, onProgress: callback(), signal: SIGNAL };

/** Checks all but the requests themselves, each of which fails by itself. @throws InvalidRequestError */
export function checkManyOptions(requests: unknown, options: unknown): void {
  const fault = optionFault<ManyOptions>('completeMany', '{ maxInFlight: 64 }', options, RULES);
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
  if (Array.isArray(requests)) return;
  throw new InvalidRequestError(
    `completeMany needs a list of requests; it was given ${shown(requests)}.`,
    'requests',
  );
}
