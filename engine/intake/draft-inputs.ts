import { input, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';

/** The draft that a request brings; null if it brings none. For combinations that are refused see checkCombinations. */
export function readDraftTokens(
  inputs: Record<string, Tensor>,
  limits: { vocabSize: number; whyNoDrafts?: string | undefined },
): Int32Array | null {
  const tokens = inputs.draft_input_ids?.data as Int32Array | undefined;
  if (tokens === undefined || tokens.length === 0) return null;
  const why = limits.whyNoDrafts;
  if (why !== undefined)
    throw new ParameterError(
      'draft_input_ids',
      says`${input('draft_input_ids')} is refused: ${why}.`,
      'unsupported',
    );
  const wrong = tokens.findIndex((token) => token < 0 || token >= limits.vocabSize);
  if (wrong < 0) return tokens;
  throw new ParameterError(
    'draft_input_ids',
    says`${input('draft_input_ids')} holds ${tokens[wrong]} at place ${wrong}; tokens are from 0 to ${limits.vocabSize - 1}.`,
  );
}

/**
 * Logits that each token of the draft was drawn from, [d, V]; null if they are not given. Throws if a token could not
 * have been drawn from its row.
 */
export function readDraftLogits(inputs: Record<string, Tensor>, vocabSize: number): Float32Array | null {
  const logits = inputs.draft_logits?.data as Float32Array | undefined;
  if (logits === undefined || logits.length === 0) return null;
  const tokens = (inputs.draft_input_ids?.data ?? new Int32Array(0)) as Int32Array;
  const numRows = logits.length / vocabSize;
  if (numRows !== tokens.length) {
    throw new ParameterError(
      'draft_logits',
      says`${input('draft_logits')} has ${numRows} rows; ${input('draft_input_ids')} has ${tokens.length} tokens, and each has a row.`,
    );
  }
  const wrong = logits.findIndex((logit) => !(logit < Number.POSITIVE_INFINITY));
  if (wrong >= 0) {
    throw new ParameterError(
      'draft_logits',
      says`${input('draft_logits')} holds ${logits[wrong]} at [${Math.floor(wrong / vocabSize)}, ${wrong % vocabSize}]; finite values or -Infinity are expected.`,
    );
  }
  const place = tokens.findIndex((token, i) => logits[i * vocabSize + token] === Number.NEGATIVE_INFINITY);
  if (place < 0) return logits;
  throw new ParameterError(
    'draft_logits',
    says`${input('draft_logits')} has -Infinity for the token ${tokens[place]} at place ${place} of ${input('draft_input_ids')}, which could not be drawn then.`,
  );
}
