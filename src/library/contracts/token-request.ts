import { z } from 'zod';
import { GUIDE_TYPES } from '../../../callbacks/guide.js';
import {
  NAMED_PARAMETERS,
  type PARAMETERS,
  type ParameterName,
} from '../../../callbacks/request/parameters.js';
import {
  type NumberParam,
  ParameterError,
  type Range,
  SAMPLING_RANGES,
} from '../../../callbacks/sampling-params.js';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { JsonForm } from './json-form.js';
import { count, flag, float, floats, NO_LESS_THAN_ZERO, sameType, token, tokens, u64 } from './values.js';

/** Fields that are no data: a request in another process has none of them. */
type OfPrograms = 'signal' | 'shared' | 'adapter';
type Carried = Omit<TokenRequest, OfPrograms>;

const OF_KIND = {
  number: (range: Range) => z.number().min(range.min).max(range.max).optional(),
  integer: (range: Range) => z.number().min(range.min).max(range.max).int().optional(),
  flag: () => flag,
  key: () => u64.nullable().optional(),
};
type FormOf<P> = P extends { kind: infer Kind extends keyof typeof OF_KIND }
  ? ReturnType<(typeof OF_KIND)[Kind]>
  : never;

const sampling = Object.fromEntries(
  NAMED_PARAMETERS.map(({ name, parameter }) => [
    name,
    OF_KIND[parameter.kind](SAMPLING_RANGES[name as NumberParam]),
  ]),
) as unknown as { [Name in ParameterName]: FormOf<(typeof PARAMETERS)[Name]> };

const retained = {
  priority: z.number().int().min(0).max(100),
  durationMs: z.number().gt(0).optional(),
};
const range = z.strictObject({ start: count, end: count.optional(), ...retained });

const schema = z.strictObject({
  promptTokens: z.array(NO_LESS_THAN_ZERO),
  maxNewTokens: z.number().int().min(1),
  ...sampling,
  promptEmbeddings: z.array(floats).optional(),
  positionIds: z.array(count).optional(),
  endTokenIds: tokens.optional(),
  stopWords: z.array(tokens).optional(),
  badWords: z.array(tokens).optional(),
  allowedTokens: tokens.optional(),
  dryBreakers: z.array(tokens).optional(),
  reasoningBudget: z
    .strictObject({ tokens: count, endToken: token, beginToken: token.optional() })
    .optional(),
  logitBias: z.record(z.string().regex(/^\d+$/), float).optional(),
  embeddingBias: floats.optional(),
  returnLogProbs: flag,
  topLogProbs: count.optional(),
  returnGenerationLogits: flag,
  returnContextLogits: flag,
  returnContextLogProbs: flag,
  topContextLogProbs: count.optional(),
  returnContextProgress: flag,
  numSequences: z.number().int().min(1).optional(),
  firstSequenceIndex: count.optional(),
  knownOutputIds: z.array(tokens).optional(),
  beams: z
    .strictObject({
      width: z.number().int().min(1),
      lengthPenalty: z.number().optional(),
      earlyStopping: z.union([z.boolean(), z.literal('never')]).optional(),
    })
    .optional(),
  streaming: flag,
  priority: z.number().min(0).max(1).optional(),
  timeLimitMs: z.number().min(1).optional(),
  cacheSalt: u64.optional(),
  loraTaskId: u64.optional(),
  adapterName: z.string().optional(),
  retention: z
    .strictObject({ ranges: z.array(range).optional(), generated: z.strictObject(retained).optional() })
    .optional(),
  logitsPostProcessor: z.string().optional(),
  draftTokens: tokens.optional(),
  draftLogits: z.array(floats).optional(),
  maxDraftLen: count.optional(),
  guide: z.strictObject({ type: z.enum(GUIDE_TYPES), guide: z.string() }).optional(),
  label: z.string().optional(),
  queueKey: z.string().optional(),
  queueWeight: z.number().gt(0).optional(),
  clientId: u64.optional(),
});

sameType<z.output<typeof schema>, JsonForm<Carried>>(true);

/** A TokenRequest as JSON. */
export const TOKEN_REQUEST: z.ZodType = schema;

/**
 * A request from its JSON form, for InProcessHost.submit.
 * @param json parsed JSON
 * @throws ParameterError naming the field that is wrong
 */
export function tokenRequestOf(json: unknown): TokenRequest {
  const read = schema.safeParse(json);
  if (!read.success) throw faultOf(read.error.issues[0]!);
  const { seed, cacheSalt, loraTaskId, clientId, logitBias, embeddingBias, ...plain } = read.data;
  const { promptEmbeddings, draftLogits, ...rest } = plain;
  const request: Record<string, unknown> = { ...rest };
  const give = <T>(name: keyof TokenRequest, value: T | undefined, convert: (value: T) => unknown) => {
    if (value !== undefined) request[name] = convert(value);
  };
  const numbers = (list: readonly (number | string)[]) => Float32Array.from(list, Number);
  give('seed', seed, (text) => (text === null ? null : BigInt(text)));
  give('cacheSalt', cacheSalt, BigInt);
  give('loraTaskId', loraTaskId, BigInt);
  give('clientId', clientId, BigInt);
  give('embeddingBias', embeddingBias, numbers);
  give('promptEmbeddings', promptEmbeddings, (rows) => rows.map(numbers));
  give('draftLogits', draftLogits, (rows) => rows.map(numbers));
  give(
    'logitBias',
    logitBias,
    (biases) => new Map(Object.entries(biases).map(([id, bias]) => [Number(id), Number(bias)])),
  );
  return request as unknown as TokenRequest;
}

function faultOf({ path, message, ...issue }: z.core.$ZodIssue): ParameterError {
  const unknown = issue.code === 'unrecognized_keys' ? (issue as { keys: string[] }).keys[0]! : null;
  const field = [...path, ...(unknown === null ? [] : [unknown])].map(String).join('.') || 'request';
  return new ParameterError(
    field,
    unknown === null ? `${field}: ${message}.` : `${field} is not a field of a request.`,
  );
}
