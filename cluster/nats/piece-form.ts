import type { FinishReason, TokenPiece } from '../../callbacks/token-request.js';

const REASONS: ReadonlySet<FinishReason> = new Set(['stop', 'length', 'cancelled', 'timeout']);

const isI32 = (value: unknown): value is Int32Array => value instanceof Int32Array;
const isF32 = (value: unknown): value is Float32Array => value instanceof Float32Array;
const isNumber = (value: unknown) => typeof value === 'number';
const areNumbers = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every((one) => one === null || isNumber(one));

/** What each field of a piece may be. */
const FIELDS: { [Field in keyof Required<TokenPiece>]: (value: unknown) => boolean } = {
  tokens: isI32,
  logProbs: isF32,
  topTokens: isI32,
  topLogProbs: isF32,
  generationLogits: isF32,
  contextLogits: isF32,
  contextLogProbs: isF32,
  contextTopTokens: isI32,
  contextTopLogProbs: isF32,
  contextProgress: areNumbers,
  cachedTokens: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  finishReason: (value) => value === null || REASONS.has(value as FinishReason),
  timing: areNumbers,
  cumLogProb: isNumber,
  seed: (value) => typeof value === 'bigint',
};
const OPTIONAL = Object.keys(FIELDS).filter((name) => name !== 'tokens' && name !== 'finishReason');

/** True for what has crossed as a piece. Fields that nothing knows may be there too: another version may have more. */
export function isPiece(value: unknown): value is TokenPiece {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  if (!isI32(fields.tokens) || !FIELDS.finishReason(fields.finishReason)) return false;
  for (const name of OPTIONAL) {
    const one = fields[name];
    if (one !== undefined && !FIELDS[name as keyof TokenPiece](one)) return false;
  }
  return areAligned(fields as unknown as TokenPiece);
}

/** Values of tokens are as many for each token. */
function areAligned({ tokens, logProbs, topTokens, topLogProbs, generationLogits }: TokenPiece): boolean {
  const { length } = tokens;
  const isFor = (array: ArrayLike<number> | undefined) =>
    array === undefined || array.length === 0 || (length > 0 && array.length % length === 0);
  if (logProbs !== undefined && logProbs.length !== length && logProbs.length !== 0) return false;
  if ((topTokens?.length ?? 0) !== (topLogProbs?.length ?? 0)) return false;
  return isFor(topTokens) && isFor(generationLogits);
}
