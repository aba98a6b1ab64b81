import type { DraftRow } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { GeneratedSequence } from '../sequences/generated-sequence.js';

/**
 * Draft token and logits that place `length` of the sequence is drawn against, if its request brought logits with its
 * draft; null: none.
 *
 *   draft      5 7 9 4
 *   sequence   prompt 5 7 .      the third token is drawn against 9 and its logits
 *   sequence   prompt 5 8 .      nothing more is: the draft is over
 *
 * The result depends only on the tokens before the place, so that a token does not depend on how many rows of the draft
 * are verified at once, at what load, or after how many pauses.
 */
export function draftLogitsAt(
  { spec, originalPromptLength }: LlmRequest,
  { tokens }: GeneratedSequence,
  length: number,
): Omit<DraftRow, 'row'> | null {
  const { draftTokens, draftLogits } = spec;
  if (draftTokens === null || draftLogits === null) return null;
  const place = length - originalPromptLength;
  if (place >= draftTokens.length) return null;
  for (let i = 0; i < place; i++) if (tokens[originalPromptLength + i] !== draftTokens[i]) return null;
  const vocabSize = draftLogits.length / draftTokens.length;
  const logits = draftLogits.subarray(place * vocabSize, (place + 1) * vocabSize);
  return { token: draftTokens[place]!, logits };
}
