import { z } from 'zod';
import { MAX_INT32 } from '../../../base/int32.js';
import { GUIDE_TYPES } from '../../../callbacks/guide.js';
import {
  type FieldKind,
  type FieldName,
  NAMED_FIELDS,
  REQUEST_FIELDS,
  type RequestField,
} from '../../../callbacks/request/fields.js';
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

/** Forms of values in the JSON of contracts. */
const NO_LESS_THAN_ZERO = z.number().int().min(0).max(MAX_INT32);
export const token = NO_LESS_THAN_ZERO;
export const tokens = z.array(token);
/** A whole number from 0 on. */
export const count = z.number().int().min(0);
const flag = z.boolean().optional();
/** A float: what JSON cannot write is a text. (A declaration of z.enum's own type would name a key by the number -Infinity.) */
const float: z.ZodUnion<readonly [z.ZodNumber, z.ZodType<'NaN' | 'Infinity' | '-Infinity'>]> = z.union([
  z.number(),
  z.enum(['NaN', 'Infinity', '-Infinity']),
]);
export const floats = z.array(float);
/** A whole number from 0 to 2^64 - 1, in decimal digits. */
export const u64 = z
  .string()
  .regex(/^\d{1,20}$/, { abort: true })
  .refine((text) => BigInt(text) < 1n << 64n, { message: 'must be below 2^64' });

/** A type with no optional fields: the fields' own types show which fields are optional. */
type Whole<T> = T extends readonly (infer Entry)[]
  ? Whole<Entry>[]
  : T extends object
    ? { [Field in keyof T]-?: Whole<Exclude<T[Field], undefined>> }
    : T;

type Same<A, B> = [Whole<A>, Whole<B>] extends [Whole<B>, Whole<A>] ? true : false;

/** Does not compile unless both types are the same: a schema has exactly the fields of its type. */
export function sameType<A, B>(_isSame: Same<A, B>): void {}

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

/** Forms of the fields by their kinds; a field whose values are narrower has one of its own below. */
const FORMS = {
  number: z.number(),
  count,
  milliseconds: z.number().min(1),
  flag: z.boolean(),
  text: z.string(),
  key: u64,
  ids: tokens,
  tokens,
  words: z.array(tokens),
  lists: z.array(tokens),
  floats,
  rows: z.array(floats),
  bias: z.record(z.string().regex(/^(0|[1-9]\d*)$/), float),
  budget: z.strictObject({ tokens: count, endToken: token, beginToken: token.optional() }),
  beams: z.strictObject({
    width: z.number().int().min(1),
    lengthPenalty: z.number().optional(),
    earlyStopping: z.union([z.boolean(), z.literal('never')]).optional(),
  }),
  retention: z.strictObject({
    ranges: z.array(range).optional(),
    generated: z.strictObject(retained).optional(),
  }),
  guide: z.strictObject({ type: z.enum(GUIDE_TYPES), guide: z.string() }),
} satisfies Record<Exclude<FieldKind, 'here'>, z.ZodType>;

const { within: WEIGHT } = REQUEST_FIELDS.queueWeight;
const { range: PRIORITY } = REQUEST_FIELDS.priority;

type Fields = typeof REQUEST_FIELDS;
type Carried = { [Name in keyof Fields]: Fields[Name]['kind'] extends 'here' ? never : Name }[keyof Fields];

const carried = Object.fromEntries(
  NAMED_FIELDS.flatMap(([name, { kind, min }]) => {
    if (kind === 'here') return [];
    const form = kind === 'count' && min !== undefined ? count.min(min) : FORMS[kind];
    return [[name, form.optional()]];
  }),
) as unknown as {
  [Name in Carried]: z.ZodOptional<(typeof FORMS)[Fields[Name]['kind'] & keyof typeof FORMS]>;
};

const schema = z.strictObject({
  ...carried,
  ...sampling,
  promptTokens: z.array(NO_LESS_THAN_ZERO),
  maxNewTokens: count.min(1),
  positionIds: z.array(count).optional(),
  topLogProbs: count.optional(),
  topContextLogProbs: count.optional(),
  priority: z.number().min(PRIORITY.min).max(PRIORITY.max).optional(),
  queueWeight: z.number().gt(WEIGHT.above).max(WEIGHT.max).optional(),
});

sameType<z.output<typeof schema>, JsonForm<Pick<TokenRequest, Carried | ParameterName>>>(true);

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
  const request: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(read.data)) {
    if (value !== undefined)
      request[name] = name === 'seed' ? keyOf(value as string | null) : fromJson(name, value);
  }
  return request as unknown as TokenRequest;
}

const keyOf = (text: string | null) => (text === null ? null : BigInt(text));
const numbersOf = (list: readonly (number | string)[]) => Float32Array.from(list, Number);

/** Values of the kinds that JSON writes in another form. */
const FROM_JSON: Partial<Record<FieldKind, (value: never) => unknown>> = {
  key: keyOf,
  floats: numbersOf,
  rows: (rows: readonly (number | string)[][]) => rows.map(numbersOf),
  bias: (biases: object) => new Map(Object.entries(biases).map(([id, bias]) => [Number(id), Number(bias)])),
};

function fromJson(name: string, value: unknown): unknown {
  const field: RequestField | undefined = REQUEST_FIELDS[name as FieldName];
  const convert = field && FROM_JSON[field.kind];
  return convert === undefined ? value : convert(value as never);
}

function faultOf({ path, message, ...issue }: z.core.$ZodIssue): ParameterError {
  const unknown = issue.code === 'unrecognized_keys' ? (issue as { keys: string[] }).keys[0]! : null;
  const field = [...path, ...(unknown === null ? [] : [unknown])].map(String).join('.') || 'request';
  return new ParameterError(
    field,
    unknown === null ? `${field}: ${message}.` : `${field} is not a field of a request.`,
  );
}
