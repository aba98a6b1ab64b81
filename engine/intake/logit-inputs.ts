import { input, says } from '../../base/named-text.js';
import { BIAS_MAX, ParameterError, type SamplingParams } from '../../callbacks/sampling-params.js';
import { decodeWordList } from '../../callbacks/stop-words.js';
import type { Tensor } from '../../callbacks/types.js';
import { BadWords } from '../decoding/bad-words.js';
import { BREAKER_TOKENS_MAX, DryPenalty } from '../decoding/dry-penalty.js';
import { ReasoningBudget } from '../decoding/reasoning-budget.js';
import type { LogitBias } from '../packed-call/sampling-batch.js';

/**
 * Bias that the request adds to its logits at every step; null if it changes nothing.
 *
 *   embedding_bias                     [1, V]            one value for each token of the vocabulary
 *   logit_bias_tokens, logit_bias      [1, n], [1, n]    the same for some tokens; both may be given, and add up
 *   allowed_token_ids                  [1, n]            the only tokens that may be drawn: all others get -Infinity
 */
export function readBias(inputs: Record<string, Tensor>, vocabSize: number): LogitBias | null {
  const dense = onlyAllowed(inputs, vocabSize, readDense(inputs));
  const sparse = readSparse(inputs, vocabSize);
  if (dense === null || sparse === null) return dense ?? sparse;
  const values = dense.values.slice();
  for (const [i, token] of sparse.tokens!.entries()) values[token]! += sparse.values[i]!;
  return { tokens: null, values };
}

const isGiven = (tensor: Tensor | undefined): tensor is Tensor => (tensor?.data.length ?? 0) > 0;

/** Leaves the bias of allowed tokens, and bans all others. */
function onlyAllowed(
  { allowed_token_ids: allowed }: Record<string, Tensor>,
  vocabSize: number,
  bias: LogitBias | null,
): LogitBias | null {
  if (!isGiven(allowed)) return bias;
  const tokens = allowed.data as Int32Array;
  checkTokens('allowed_token_ids', tokens, vocabSize);
  const values = new Float32Array(vocabSize).fill(-Infinity);
  for (const token of tokens) values[token] = bias?.values[token] ?? 0;
  return { tokens: null, values };
}

function readDense({ embedding_bias: bias }: Record<string, Tensor>): LogitBias | null {
  if (!bias) return null;
  const values = bias.data as Float32Array;
  checkValues('embedding_bias', values);
  return values.every((value) => value === 0) ? null : { tokens: null, values };
}

function readSparse(inputs: Record<string, Tensor>, vocabSize: number): LogitBias | null {
  const { logit_bias_tokens: given, logit_bias: bias } = inputs;
  if (!given !== !bias) {
    const [missing, other] = given
      ? ['logit_bias', 'logit_bias_tokens']
      : ['logit_bias_tokens', 'logit_bias'];
    throw new ParameterError(
      missing,
      says`${input(missing)} is missing; ${input(other)} is of no use without it.`,
    );
  }
  if (!given || !bias) return null;
  const [tokens, values] = [given.data as Int32Array, bias.data as Float32Array];
  if (tokens.length !== values.length) {
    throw new ParameterError(
      'logit_bias',
      says`${input('logit_bias')} has ${values.length} values; ${input('logit_bias_tokens')} has ${tokens.length} tokens, one value for each is expected.`,
    );
  }
  checkTokens('logit_bias_tokens', tokens, vocabSize);
  checkValues('logit_bias', values);
  return tokens.length === 0 ? null : { tokens, values };
}

function checkValues(field: string, values: Float32Array): void {
  const wrong = values.findIndex((value) => !(Math.abs(value) <= BIAS_MAX || value === -Infinity));
  if (wrong < 0) return;
  throw new ParameterError(
    field,
    says`${input(field)} holds ${values[wrong]} at place ${wrong}; a number from ${-BIAS_MAX} to ${BIAS_MAX} is expected, or -Infinity for a token that is never to be drawn.`,
  );
}

/** The words of bad_words_list [1, 2, n] (see decodeWordList); null if there are none. */
export function readBadWords(inputs: Record<string, Tensor>, vocabSize: number): BadWords | null {
  const { bad_words_list: list } = inputs;
  if (!list) return null;
  const words = decodeWordList('bad_words_list', list.shape, list.data as Int32Array);
  for (const word of words) checkTokens('bad_words_list', word, vocabSize);
  return words.length === 0 ? null : new BadWords(words);
}

/** DRY of a request, with its breakers [1, 2, n] (see decodeWordList); null if it uses none. */
export function readDry(
  inputs: Record<string, Tensor>,
  sampling: SamplingParams,
  vocabSize: number,
): DryPenalty | null {
  const { dry_sequence_breakers: list } = inputs;
  const breakers = list ? decodeWordList('dry_sequence_breakers', list.shape, list.data as Int32Array) : [];
  for (const breaker of breakers) {
    checkTokens('dry_sequence_breakers', breaker, vocabSize);
    if (breaker.length <= BREAKER_TOKENS_MAX) continue;
    throw new ParameterError(
      'dry_sequence_breakers',
      says`${input('dry_sequence_breakers')} has a breaker of ${breaker.length} tokens; at most ${BREAKER_TOKENS_MAX} are taken.`,
    );
  }
  return DryPenalty.of(sampling, breakers, vocabSize);
}

function checkTokens(field: string, tokens: Int32Array, vocabSize: number): void {
  const place = tokens.findIndex((token) => token < 0 || token >= vocabSize);
  if (place < 0) return;
  throw new ParameterError(
    field,
    says`${input(field)} holds ${tokens[place]} at place ${place}; tokens are from 0 to ${vocabSize - 1}.`,
  );
}

/** Throws if biases and bad words together leave no token that could ever be drawn. */
export function checkSomeTokenIsLeft(
  inputs: Record<string, Tensor>,
  badWords: BadWords | null,
  bias: LogitBias | null,
  vocabSize: number,
): void {
  const never = bias === null ? [] : tokensNeverDrawn(bias);
  const banned = badWords?.single ?? new Int32Array(0);
  if (never.length + banned.length < vocabSize) return;
  if (new Set([...never, ...banned]).size < vocabSize) return;
  const ofBias = isGiven(inputs.allowed_token_ids) ? 'allowed_token_ids' : 'embedding_bias';
  const field = badWords === null ? ofBias : 'bad_words_list';
  throw new ParameterError(
    field,
    says`${input(field)} is refused: with it all ${vocabSize} tokens of the vocabulary are banned, so none could be drawn.`,
  );
}

function tokensNeverDrawn({ tokens, values }: LogitBias): number[] {
  const never: number[] = [];
  for (const [i, value] of values.entries()) if (value === -Infinity) never.push(tokens?.[i] ?? i);
  return never;
}

/**
 * Budget of a request's reasoning; null: it has none, or a negative one.
 *
 *   reasoning_budget                   [1, 3]            tokens, id of the token that ends reasoning, id of the one that
 *                                                        begins it (-1: the answer begins within reasoning)
 */
export function readReasoningBudget(
  { reasoning_budget: budget }: Record<string, Tensor>,
  vocabSize: number,
): ReasoningBudget | null {
  if (!budget) return null;
  const [tokens, endToken, beginToken] = budget.data as Int32Array as unknown as [number, number, number];
  const check = (what: string, token: number, least: number) => {
    if (token >= least && token < vocabSize) return;
    throw new ParameterError(
      'reasoning_budget',
      says`${input('reasoning_budget')} has ${token} as the token that ${what} reasoning; it must be from ${least} to ${vocabSize - 1}.`,
    );
  };
  check('ends', endToken, 0);
  check('begins', beginToken, -1);
  return tokens < 0 ? null : new ReasoningBudget({ tokens, endToken, beginToken }, vocabSize);
}
