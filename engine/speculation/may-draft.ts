import type { LlmRequest } from '../request/llm-request.js';

/**
 * True if a request may have drafts at all. Its answer is the same either way; without drafts only the speed differs.
 * These have none:
 *
 * - several sequences or beams: each step already has a row for each of them, and beams choose among each other's tokens;
 * - a logits post-processor: it is promised one row a step, and the tokens so far in front of it;
 * - a guide: the tokens that it forces are its draft (mayJump);
 * - mirostat: what it draws a token from depends on the token drawn before;
 * - returned generation logits: the memory that is reserved for them counts one row a step.
 */
export function mayDraft(request: LlmRequest): boolean {
  return request.spec.guide === null && hasRowsForDrafts(request);
}

/** True if a draft model, or a head, may draft for the request: neither can read embeddings that a prompt brings, those of pictures included. */
export function modelMayDraft(request: LlmRequest): boolean {
  return mayDraft(request) && request.spec.promptTable === null;
}

/** True if the tokens that a request's guide forces may be its draft. */
export function mayJump(request: LlmRequest): boolean {
  const { guide, maxDraftLen } = request.spec;
  return guide !== null && maxDraftLen !== 0 && hasRowsForDrafts(request);
}

function hasRowsForDrafts({ spec, sequences, live }: LlmRequest): boolean {
  if (sequences.length !== 1 || live.length !== 1 || spec.beams !== null) return false;
  if (spec.sampling.mirostat > 0) return false;
  return spec.postProcessor === null && !spec.returnGenerationLogits;
}
