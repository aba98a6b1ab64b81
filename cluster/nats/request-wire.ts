import { type FieldKind, NAMED_FIELDS, type RequestField } from '../../callbacks/request/fields.js';
import type { ParameterKind } from '../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../callbacks/request/parameters.js';
import { MAX_SEQUENCES, type TokenRequest } from '../../callbacks/token-request.js';
import { type Packable, PacketError } from './packet.js';

/** How values cross: whole numbers, numbers and times alike, and some fields stay here. */
type Form = Exclude<FieldKind, 'count' | 'milliseconds'>;

const formOf = ({ kind, staysInGateway }: RequestField): Form => {
  if (staysInGateway) return 'here';
  // The gateway ends the request in time; a worker gets the time that is left, which needs no common clock.
  return kind === 'count' || kind === 'milliseconds' ? 'number' : kind;
};

const OF_KIND = { number: 'number', integer: 'number', flag: 'flag', key: 'key' } as const satisfies Record<
  ParameterKind,
  Form
>;

const FORMS: readonly (readonly [name: string, form: Form])[] = [
  ...NAMED_FIELDS.map(([name, field]) => [name, formOf(field)] as const),
  ...NAMED_PARAMETERS.map(({ name, parameter }) => [name, OF_KIND[parameter.kind]] as const),
];

/** A request as it crosses. */
export type PackedRequest = Readonly<Record<string, Packable>>;

const tokens = (list: ArrayLike<number>): Int32Array =>
  list instanceof Int32Array ? list : Int32Array.from(list);

/** The request without what stays here. Its values are those that a host has accepted. */
export function packedRequest(request: TokenRequest): PackedRequest {
  const packed: Record<string, Packable> = {};
  for (const [name, form] of FORMS) {
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

const isI32 = (value: unknown): value is Int32Array => value instanceof Int32Array;
const isF32 = (value: unknown): value is Float32Array => value instanceof Float32Array;
const isNumber = (value: unknown): value is number => typeof value === 'number';
const isText = (value: unknown) => typeof value === 'string';
const isSwitch = (value: unknown) => typeof value === 'boolean';
const all = (is: (one: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(is);
const or = (is: (one: unknown) => boolean) => (value: unknown) => value === undefined || is(value);

/** An object whose fields are of these types, and whatever else another version may have in it. */
const fields = (types: Readonly<Record<string, (one: unknown) => boolean>>) => (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(types).every(([name, is]) => is((value as Record<string, unknown>)[name]));

const isIds = (value: unknown) => isI32(value) || all(isNumber)(value);
const PRIORITY = { priority: isNumber, durationMs: or(isNumber) };

const CHECKS: Readonly<Record<Exclude<Form, 'here' | 'bias'>, (value: unknown) => boolean>> = {
  number: isNumber,
  text: isText,
  flag: isSwitch,
  ids: isIds,
  words: all(isIds),
  guide: fields({ type: isText, guide: isText }),
  beams: fields({
    width: isNumber,
    lengthPenalty: or(isNumber),
    earlyStopping: or((value) => isSwitch(value) || value === 'never'),
  }),
  budget: fields({ tokens: isNumber, endToken: isNumber, beginToken: or(isNumber) }),
  retention: fields({
    ranges: or(all(fields({ ...PRIORITY, start: isNumber, end: or(isNumber) }))),
    generated: or(fields(PRIORITY)),
  }),
  tokens: isI32,
  lists: all(isI32),
  floats: isF32,
  // Rows become one table of as many values as the first has in each.
  rows: (value) =>
    all(isF32)(value) && (value as Float32Array[]).every((row, _, [first]) => row.length === first!.length),
  key: (value) => typeof value === 'bigint' && BigInt.asUintN(64, value) === value,
};

/** Most tokens of the table that the known tokens of all sequences make, which is as wide as the longest list. */
const MAX_KNOWN_TABLE = 2 ** 24;

/**
 * Reads a request that has crossed. Its fields have the right types, and what an engine makes of them before it checks
 * their values, which is its part, takes a bounded amount of memory. Fields that nothing knows are left out: another
 * version may have more. @throws PacketError
 */
export function unpackedRequest(packed: unknown): TokenRequest {
  if (typeof packed !== 'object' || packed === null) throw new PacketError('A request is no object.');
  const request: Record<string, unknown> = {};
  for (const [name, form] of FORMS) {
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
  const read = request as unknown as TokenRequest;
  checkSequences(read);
  return read;
}

/** Number of sequences, or beams, that a request asks for. */
export function numSequencesOf({ beams, numSequences = 1 }: TokenRequest): number {
  const { width = 1 } = beams ?? {};
  return width > 1 ? width : numSequences;
}

function checkSequences(request: TokenRequest): void {
  const asked = numSequencesOf(request);
  if (!(Number.isInteger(asked) && asked >= 1 && asked <= MAX_SEQUENCES)) {
    throw new PacketError(`A request asks for ${asked} sequences; 1 to ${MAX_SEQUENCES} are expected.`);
  }
  const { knownOutputIds: lists = [] } = request;
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0);
  if (longest * lists.length > MAX_KNOWN_TABLE) {
    throw new PacketError(
      `The known tokens of a request make a table of ${lists.length} x ${longest}; at most ${MAX_KNOWN_TABLE} are taken.`,
    );
  }
}

function unpackedBias(name: string, value: unknown): Map<number, number> {
  const { tokens: keys, values } = (value ?? {}) as Record<string, unknown>;
  if (!isI32(keys) || !(values instanceof Float64Array) || keys.length !== values.length) {
    throw new PacketError(`The field ${name} of a request has no tokens with as many values.`);
  }
  return new Map(Array.from(keys, (key, i) => [key, values[i]!]));
}
