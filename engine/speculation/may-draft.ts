import type { LlmRequest } from '../llm-request.js';

/**
 * Whether a request may have drafts at all. Its answer is the same either way: these only go without the speed.
 *
 * - several sequences or beams: each step already has a row for each of them, and beams choose among each other's tokens;
 * - a logits post-processor: it is promised one row a step, and the tokens so far in front of it;
 * - a guide: its masks are made for one row a step;
 * - embeddings of its own in the prompt: what repeats the prompt could name one, and none is ever generated;
 * - returned generation logits: the memory that is reserved for them counts one row a step.
 */
export function mayDraft({ spec, sequences, live }: LlmRequest): boolean {
  if (sequences.length !== 1 || live.length !== 1) return false;
  if (spec.beams !== null || spec.guide !== null || spec.promptTable !== null) return false;
  return spec.postProcessor === null && !spec.returnGenerationLogits;
}
