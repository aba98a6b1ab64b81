import { closestName } from '../base/did-you-mean.js';
import { input, says } from '../base/named-text.js';
import { isObject } from '../base/option-values.js';
import type { Guide } from '../callbacks/guide.js';
import { type FieldKind, type FieldName, NAMED_FIELDS } from '../callbacks/request/fields.js';
import type { ParameterKind } from '../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import { SharedTensors } from '../callbacks/shared-tensors.js';
import type { ReasoningBudgetOptions, TokenBeams, TokenRequest } from '../callbacks/token-request.js';
import type { Retention, RetentionPriority } from '../kvcache/retention.js';

/** End tokens of a request: models have a few. */
const MAX_IDS = 1024;

/** What a field holds, and the words for it. */
const KINDS = {
  flag: { words: 'true or false is', holds: (value) => typeof value === 'boolean' },
  number: { words: 'a number is', holds: (value) => typeof value === 'number' },
  text: { words: 'a text is', holds: (value) => typeof value === 'string' },
  tokens: { words: 'an array or Int32Array of token ids is', holds: isTokens },
  lists: {
    words: 'an array of arrays of token ids is',
    // `every` would pass over holes.
    holds: (value) => Array.isArray(value) && !value.includes(undefined) && value.every(isTokens),
  },
  floats: { words: 'a Float32Array is', holds: (value) => value instanceof Float32Array },
  rows: {
    words: 'an array of Float32Arrays is',
    holds: (value) =>
      Array.isArray(value) && !value.includes(undefined) && value.every((row) => row instanceof Float32Array),
  },
  map: { words: 'a Map of token ids and numbers is', holds: (value) => value instanceof Map },
  signal: { words: 'an AbortSignal is', holds: isSignal },
  shared: { words: 'a SharedTensors is', holds: (value) => value instanceof SharedTensors },
  joined: { words: 'a JoinedRows is', holds: (value) => isObject(value) && typeof value.take === 'function' },
  span: { words: 'a TraceSpan is', holds: (value) => isObject(value) && typeof value.child === 'function' },
  ids: {
    words: `an array or Int32Array of at most ${MAX_IDS} token ids is`,
    holds: (value) => isTokens(value) && (value as readonly number[]).length <= MAX_IDS,
  },
  seed: {
    words: 'a bigint, such as 1n, or null is',
    holds: (value) => typeof value === 'bigint' || value === null,
  },
  object: { words: 'an object is', holds: isObject },
  beams: {
    words: 'an object { width, lengthPenalty, earlyStopping } is',
    holds: (value) =>
      isObject(value) &&
      ['number', 'undefined'].includes(typeof value.lengthPenalty) &&
      [undefined, true, false, 'never'].includes(value.earlyStopping as boolean),
  },
  guide: {
    words: 'an object of two texts, { type, guide }, is',
    holds: (value) => isObject(value) && [value.type, value.guide].every((text) => typeof text === 'string'),
  },
} satisfies Record<string, { words: string; holds: (value: unknown) => boolean }>;

function isTokens(value: unknown): boolean {
  return Array.isArray(value) || value instanceof Int32Array;
}

/** Of any realm, and of a polyfill too. */
function isSignal(value: unknown): boolean {
  return isObject(value) && 'aborted' in value && typeof value.addEventListener === 'function';
}

/** What a field of each kind holds; null: its value is checked with its range, in whatever form it comes. */
const OF_FIELD: Readonly<Record<FieldKind, keyof typeof KINDS | null>> = {
  number: 'number',
  count: null,
  milliseconds: null,
  flag: 'flag',
  text: 'text',
  key: null,
  ids: 'ids',
  tokens: 'tokens',
  words: 'lists',
  lists: null,
  floats: 'floats',
  rows: 'rows',
  bias: 'map',
  beams: 'beams',
  budget: 'object',
  retention: 'object',
  guide: 'guide',
  here: null,
};

/** Names of an object's fields; those of an object inside, or of each in a list of them. */
interface Names {
  readonly [name: string]: Names | null;
}

/** The names of a type, each of them. */
const namesOf = <T>(names: { readonly [Name in keyof T]-?: Names | null }): Names => names;

const PRIORITY = { priority: null, durationMs: null };
/** Names inside the objects that a field may hold. */
const NAMES_INSIDE: Partial<Record<FieldKind, Names>> = {
  beams: namesOf<TokenBeams>({ width: null, lengthPenalty: null, earlyStopping: null }),
  budget: namesOf<ReasoningBudgetOptions>({ tokens: null, endToken: null, beginToken: null }),
  guide: namesOf<Guide>({ type: null, guide: null }),
  retention: namesOf<Retention>({
    ranges: namesOf<NonNullable<Retention['ranges']>[number]>({ start: null, end: null, ...PRIORITY }),
    generated: namesOf<RetentionPriority>(PRIORITY),
  }),
};

/** Objects of this process. */
const OF_NAME: Partial<Record<FieldName, keyof typeof KINDS>> = {
  signal: 'signal',
  shared: 'shared',
  joinedEmbeddings: 'joined',
  trace: 'span',
};

/** Numbers are checked with their ranges. */
const OF_PARAMETERS = { number: null, integer: null, flag: 'flag', key: 'seed' } as const satisfies Record<
  ParameterKind,
  keyof typeof KINDS | null
>;

const FIELDS: ReadonlyMap<string, keyof typeof KINDS | null> = new Map<string, keyof typeof KINDS | null>([
  ...NAMED_PARAMETERS.map(({ name, parameter }) => [name, OF_PARAMETERS[parameter.kind]] as const),
  ...NAMED_FIELDS.map(([name, { kind }]) => [name, OF_NAME[name] ?? OF_FIELD[kind]] as const),
]);

const INSIDE: ReadonlyMap<string, Names> = new Map(
  NAMED_FIELDS.flatMap(([name, { kind }]) => {
    const names = NAMES_INSIDE[kind];
    return names === undefined ? [] : [[name, names] as const];
  }),
);

/**
 * Refuses a field that a request does not have, which would be left out without a word, and a value that is of another kind than the
 * field's. @throws ParameterError
 */
export function checkTokenFields(request: TokenRequest): void {
  if (!isObject(request))
    throw new ParameterError('request', `A request is an object, not ${kindOf(request)}.`);
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined) continue;
    const kind = FIELDS.get(name);
    if (kind === undefined) throw unknownField(name, 'a request', [...FIELDS.keys()]);
    if (kind !== null && !KINDS[kind].holds(value)) {
      throw new ParameterError(
        name,
        says`${input(name)} is ${kindOf(value)}; ${KINDS[kind].words} expected.`,
      );
    }
    const inside = INSIDE.get(name);
    if (inside !== undefined) checkNames(name, value, inside);
  }
  if (request.promptTokens === undefined) {
    throw new ParameterError(
      'promptTokens',
      says`${input('promptTokens')} is missing; ${KINDS.tokens.words} expected.`,
    );
  }
}

/** Refuses names that an object, or one in a list, does not have. Other values are refused where they are read. */
function checkNames(field: string, value: unknown, names: Names): void {
  for (const [place, item] of (Array.isArray(value) ? value : [value]).entries()) {
    if (!isObject(item)) continue;
    const where = Array.isArray(value) ? `${field}[${place}]` : field;
    for (const [name, inside] of Object.entries(item)) {
      const known = Object.hasOwn(names, name) ? names[name] : undefined;
      if (known === undefined) throw unknownField(name, where, Object.keys(names));
      if (known !== null) checkNames(`${where}.${name}`, inside, known);
    }
  }
}

function unknownField(name: string, where: string, known: readonly string[]): ParameterError {
  const meant = closestName(name, known);
  const hint = meant === null ? `known are ${known.join(', ')}.` : `did you mean ${meant}?`;
  const shown = name.slice(0, 64);
  return new ParameterError(shown, `${shown} is not a field of ${where}; ${hint}`);
}

/** Words for a value of a wrong kind. */
function kindOf(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'an array';
  if (ArrayBuffer.isView(value) || value instanceof Map) return `a ${value.constructor.name}`;
  if (typeof value === 'object') return 'an object';
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`;
}
