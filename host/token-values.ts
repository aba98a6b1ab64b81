import { MAX_INT32 } from '../base/int32.js';
import { input, says } from '../base/named-text.js';
import { type FieldKind, NAMED_FIELDS, type RequestField } from '../callbacks/request/fields.js';
import { checkRetentionValues } from '../callbacks/retention-inputs.js';
import {
  checkRange,
  ParameterError,
  resolveSamplingParams,
  type SamplingParams,
  shownValue,
} from '../callbacks/sampling-params.js';
import type { ReasoningBudgetOptions, TokenBeams, TokenRequest } from '../callbacks/token-request.js';
import type { Tensor } from '../callbacks/types.js';
import type { Retention } from '../kvcache/retention.js';

type Check = (name: string, value: never, field: RequestField) => void;
type Tokens = Int32Array | readonly number[];

const COUNT = { min: 1, max: MAX_INT32, integer: true };

/** How the values of each kind are checked, once they are known to be of the kind. */
const CHECKS: Partial<Record<FieldKind, Check>> = {
  number: checkNumber,
  count: (name, value: number, { min = 0 }) => checkRange(name, value, { ...COUNT, min }),
  milliseconds: (name, value: number) => checkRange(name, value, { ...COUNT, integer: false }),
  key: checkKey,
  text: (name, value: string, { tensor }) => {
    if (tensor !== undefined && value === '') throw emptyName(name);
  },
  ids: checkTokens,
  tokens: checkTokens,
  words: checkWords,
  lists: checkLists,
  rows: checkRows,
  bias: checkBias,
  beams: (name, { width }: TokenBeams) => checkRange(`${name}.width`, width, COUNT),
  budget: checkBudget,
  retention: (_, value: Retention) => checkRetentionValues(value),
};

const CHECKED = NAMED_FIELDS.flatMap(([name, field]) => {
  const check = CHECKS[field.kind];
  return check === undefined ? [] : [{ name, field, check }];
});

/**
 * Checks the values of a request whose fields have the right kinds: refuses what a tensor could not carry unchanged.
 * @returns the parameters of sampling, with defaults @throws ParameterError
 */
export function checkTokenValues(request: TokenRequest): SamplingParams {
  const sampling = resolveSamplingParams(request);
  const { shared } = request;
  for (const { name, field, check } of CHECKED) {
    const value = request[name];
    if (value === undefined && name !== 'maxNewTokens') continue;
    const run = () => check(name, value as never, field);
    if (shared !== undefined && LISTS.has(field.kind)) checkOnce(shared, value as object, name, run);
    else run();
  }
  return sampling;
}

/** Kinds of long lists, which many requests may share. */
const LISTS: ReadonlySet<FieldKind> = new Set(['tokens', 'words', 'bias']);
const CHECKED_MARK: Tensor = { shape: [0], data: new Int32Array(0) };

/** Checks a list that requests share for the first of them only: for hundreds of answers to one prompt that is most of the work. */
function checkOnce(
  shared: NonNullable<TokenRequest['shared']>,
  list: object,
  name: string,
  check: () => void,
): void {
  shared.of(
    list,
    () => {
      check();
      return CHECKED_MARK;
    },
    `${name}, checked`,
  );
}

function checkKey(name: string, value: bigint): void {
  if (typeof value === 'bigint' && BigInt.asUintN(64, value) === value) return;
  throw new ParameterError(
    name,
    says`${input(name)} is ${String(value)}; it must be a bigint from 0 to 2^64 - 1, such as 1n.`,
  );
}

/** An empty tensor would be one that was not given. */
function emptyName(name: string): ParameterError {
  return new ParameterError(
    name,
    says`${input(name)} is empty; it must be the name of a logits post-processor.`,
  );
}

/** A number that is not whole would silently become another token. */
function checkTokens(name: string, tokens: Tokens): void {
  if (!(tokens instanceof Int32Array)) checkEach(name, tokens);
}

function checkEach(name: string, tokens: Iterable<unknown>): void {
  let place = 0;
  for (const token of tokens) {
    if (typeof token !== 'number' || token !== (token | 0)) {
      const expected = Number.isInteger(token) ? 'whole numbers of 32 bits' : 'whole numbers';
      throw new ParameterError(
        name,
        says`${input(name)} holds ${shownValue(token)} at place ${place}; ${expected} are expected.`,
      );
    }
    place++;
  }
}

/** As a tensor a number is a whole one of 32 bits, whose limits the engine knows. */
function checkNumber(name: string, value: number, { tensor, within }: RequestField): void {
  if (tensor !== undefined && value !== (value | 0)) checkRange(name, value, { ...COUNT, min: 0 });
  if (within === undefined) return;
  const { above, max } = within;
  if (value > above && value <= max) return;
  throw new ParameterError(
    name,
    says`${input(name)} is ${value}; it must be a number above ${above} and at most ${max}.`,
  );
}

function checkBias(name: string, biases: ReadonlyMap<number, number>): void {
  checkEach(name, biases.keys());
  for (const [token, bias] of biases) {
    if (typeof bias === 'number') continue;
    throw new ParameterError(
      name,
      says`${input(name)} has ${shownValue(bias)} for token ${token}; a number is expected.`,
    );
  }
}

function checkBudget(name: string, { tokens, endToken, beginToken }: ReasoningBudgetOptions): void {
  checkRange(`${name}.tokens`, tokens, { ...COUNT, min: 0 });
  checkRange(`${name}.endToken`, endToken, { ...COUNT, min: -1 });
  if (beginToken !== undefined) checkRange(`${name}.beginToken`, beginToken, { ...COUNT, min: -1 });
}

/** The layout of words could not distinguish an empty one from none. */
function checkWords(name: string, words: readonly Tokens[]): void {
  if (words.some((word) => word.length === 0)) {
    throw new ParameterError(
      name,
      says`${input(name)} holds a word without tokens; at least 1 token is needed.`,
    );
  }
  for (const word of words) checkTokens(name, word);
}

/** Tokens of lists must all be 0 or more: the tensor marks the end of a list with -1. */
function checkLists(name: string, lists: readonly Tokens[]): void {
  if (!Array.isArray(lists)) {
    throw new ParameterError(
      name,
      says`${input(name)} is ${String(lists)}; lists of tokens are expected, one for each sequence.`,
    );
  }
  for (const [i, list] of lists.entries()) {
    const place = `${name}[${i}]`;
    if (!Array.isArray(list) && !(list instanceof Int32Array)) {
      throw new ParameterError(
        place,
        says`${input(place)} is ${String(list)}; a list of tokens for each sequence is expected.`,
      );
    }
    checkTokens(place, list);
    const wrong = (list as readonly number[]).findIndex((token) => token < 0);
    if (wrong < 0) continue;
    throw new ParameterError(
      place,
      says`${input(place)} holds ${list[wrong]} at place ${wrong}; tokens are from 0 on.`,
    );
  }
}

function checkRows(name: string, rows: readonly Float32Array[]): void {
  const width = rows[0]?.length ?? 0;
  const wrong = rows.findIndex(({ length }) => length !== width);
  if (wrong < 0) return;
  throw new ParameterError(
    name,
    says`${input(name)} has ${rows[wrong]!.length} values in row ${wrong} and ${width} in row 0; all rows have the same length.`,
  );
}
