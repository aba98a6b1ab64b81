import type { TokenRequest } from '../token-request.js';
import { type Packable, PacketError } from './packet.js';

/**
 * How each field of a request crosses:
 *
 *   number, switch, text
 *   numbers  a list of numbers
 *   words    a list of such lists
 *   object   with fields of these kinds, which the engine checks
 *   tokens   numbers as an Int32Array
 *   lists    lists of numbers, an Int32Array for each
 *   floats   a Float32Array
 *   rows     Float32Arrays
 *   bias     a Map of tokens and numbers
 *   key      a bigint from 0 to 2^64 - 1
 *   here     it stays: it means something only in this process, or the queue has its own way with it
 */
type Form =
  | 'number'
  | 'switch'
  | 'text'
  | 'numbers'
  | 'words'
  | 'object'
  | 'tokens'
  | 'lists'
  | 'floats'
  | 'rows'
  | 'bias'
  | 'key'
  | 'here';

const FORMS = {
  promptTokens: 'tokens',
  maxNewTokens: 'number',
  promptEmbeddings: 'rows',
  positionIds: 'tokens',
  endTokenIds: 'numbers',
  stopWords: 'words',
  badWords: 'words',
  allowedTokens: 'tokens',
  dryBreakers: 'words',
  reasoningBudget: 'object',
  logitBias: 'bias',
  embeddingBias: 'floats',
  returnLogProbs: 'switch',
  topLogProbs: 'number',
  returnGenerationLogits: 'switch',
  returnContextLogits: 'switch',
  returnContextLogProbs: 'switch',
  topContextLogProbs: 'number',
  returnContextProgress: 'switch',
  numSequences: 'number',
  firstSequenceIndex: 'number',
  knownOutputIds: 'lists',
  beams: 'object',
  streaming: 'switch',
  priority: 'number',
  // The gateway ends the request in time; a worker gets the time that is left, which needs no common clock.
  timeLimitMs: 'number',
  signal: 'here',
  cacheSalt: 'key',
  // Workers number adapters each for itself: they go by name.
  loraTaskId: 'here',
  adapter: 'here',
  adapterName: 'text',
  retention: 'object',
  logitsPostProcessor: 'text',
  draftTokens: 'tokens',
  draftLogits: 'rows',
  maxDraftLen: 'number',
  guide: 'object',
  label: 'text',
  // Whose turn it is was decided before a request is offered.
  queueKey: 'here',
  queueWeight: 'here',
  clientId: 'key',
  shared: 'here',
  temperature: 'number',
  topK: 'number',
  topP: 'number',
  minP: 'number',
  repetitionPenalty: 'number',
  presencePenalty: 'number',
  frequencyPenalty: 'number',
  penaltyLastN: 'number',
  noRepeatNgramSize: 'number',
  minLength: 'number',
  typicalP: 'number',
  topNSigma: 'number',
  xtcProbability: 'number',
  xtcThreshold: 'number',
  dynatempRange: 'number',
  dynatempExponent: 'number',
  temperatureLast: 'switch',
  mirostat: 'number',
  mirostatTau: 'number',
  mirostatEta: 'number',
  dryMultiplier: 'number',
  dryBase: 'number',
  dryAllowedLength: 'number',
  dryPenaltyLastN: 'number',
  seed: 'key',
} as const satisfies Record<keyof TokenRequest, Form>;

/** A request as it crosses. */
export type PackedRequest = Readonly<Record<string, Packable>>;

const tokens = (list: ArrayLike<number>): Int32Array =>
  list instanceof Int32Array ? list : Int32Array.from(list);

/** The request without what stays here. Its values are those that a host has accepted. */
export function packedRequest(request: TokenRequest): PackedRequest {
  const packed: Record<string, Packable> = {};
  for (const [name, form] of Object.entries(FORMS)) {
    const value: unknown = request[name as keyof TokenRequest];
    if (value === undefined || value === null || form === 'here') continue;
    packed[name] = packedValue(form, value);
  }
  return packed;
}

function packedValue(form: Form, value: unknown): Packable {
  if (form === 'tokens') return tokens(value as ArrayLike<number>);
  if (form === 'lists') return (value as ArrayLike<number>[]).map(tokens);
  if (form !== 'bias') return value as Packable;
  const bias = value as ReadonlyMap<number, number>;
  return { tokens: Int32Array.from(bias.keys()), values: Float64Array.from(bias.values()) };
}

const isNumber = (value: unknown) => typeof value === 'number';
const isI32 = (value: unknown): value is Int32Array => value instanceof Int32Array;
const isF32 = (value: unknown): value is Float32Array => value instanceof Float32Array;
const all = (is: (one: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(is);

const CHECKS: Readonly<Record<Exclude<Form, 'here' | 'bias'>, (value: unknown) => boolean>> = {
  number: isNumber,
  switch: (value) => typeof value === 'boolean',
  text: (value) => typeof value === 'string',
  numbers: all(isNumber),
  words: all(all(isNumber)),
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  tokens: isI32,
  lists: all(isI32),
  floats: isF32,
  rows: all(isF32),
  key: (value) => typeof value === 'bigint' && BigInt.asUintN(64, value) === value,
};

/**
 * Reads a request that has crossed. Its arrays have the right types; values are the engine's to check. Fields that
 * nothing knows are left out: another version may have more. @throws PacketError
 */
export function unpackedRequest(packed: unknown): TokenRequest {
  if (typeof packed !== 'object' || packed === null) throw new PacketError('A request is no object.');
  const request: Record<string, unknown> = {};
  for (const [name, form] of Object.entries(FORMS)) {
    const value = (packed as Record<string, unknown>)[name];
    if (value === undefined || form === 'here') continue;
    if (form === 'bias') {
      request[name] = unpackedBias(name, value);
      continue;
    }
    if (!CHECKS[form](value))
      throw new PacketError(`The field ${name} of a request is not of the form '${form}'.`);
    request[name] = value;
  }
  if (!isI32(request.promptTokens)) throw new PacketError('A request has no promptTokens.');
  return request as unknown as TokenRequest;
}

function unpackedBias(name: string, value: unknown): Map<number, number> {
  const { tokens: keys, values } = (value ?? {}) as Record<string, unknown>;
  if (!isI32(keys) || !(values instanceof Float64Array) || keys.length !== values.length) {
    throw new PacketError(`The field ${name} of a request has no tokens with as many values.`);
  }
  return new Map(Array.from(keys, (key, i) => [key, values[i]!]));
}
