import { ParameterError } from '../engine/decoding/sampling-params.js';
import type { Tensor } from './types.js';

/**
 * The draft that a request brings; null where it brings none. What it cannot have is its own draft beside beams, since
 * the tokens of one beam are no draft of another's.
 */
export function readDraftTokens(
  inputs: Record<string, Tensor>,
  limits: { vocabSize: number; whyNoDrafts?: string | undefined },
): Int32Array | null {
  const tokens = inputs.draft_input_ids?.data as Int32Array | undefined;
  if (tokens === undefined || tokens.length === 0) return null;
  const why = limits.whyNoDrafts ?? whyItCannotHaveOne(inputs);
  if (why !== null) throw new ParameterError('draft_input_ids', `draft_input_ids is refused: ${why}.`);
  const wrong = tokens.findIndex((token) => token < 0 || token >= limits.vocabSize);
  if (wrong < 0) return tokens;
  throw new ParameterError(
    'draft_input_ids',
    `draft_input_ids holds ${tokens[wrong]} at place ${wrong}; tokens are from 0 to ${limits.vocabSize - 1}.`,
  );
}

/**
 * What each token of the draft was drawn from, [d, V]; null where it is not given. Throws where a token could not have
 * been drawn from its row.
 */
export function readDraftLogits(inputs: Record<string, Tensor>, vocabSize: number): Float32Array | null {
  const logits = inputs.draft_logits?.data as Float32Array | undefined;
  if (logits === undefined || logits.length === 0) return null;
  const tokens = (inputs.draft_input_ids?.data ?? new Int32Array(0)) as Int32Array;
  const numRows = logits.length / vocabSize;
  if (numRows !== tokens.length) {
    throw new ParameterError(
      'draft_logits',
      `draft_logits has ${numRows} rows; draft_input_ids has ${tokens.length} tokens, and each has a row.`,
    );
  }
  const wrong = logits.findIndex((logit) => !(logit < Number.POSITIVE_INFINITY));
  if (wrong >= 0) {
    throw new ParameterError(
      'draft_logits',
      `draft_logits holds ${logits[wrong]} at [${Math.floor(wrong / vocabSize)}, ${wrong % vocabSize}]; finite values or -Infinity are expected.`,
    );
  }
  const place = tokens.findIndex((token, i) => logits[i * vocabSize + token] === Number.NEGATIVE_INFINITY);
  if (place < 0) return logits;
  throw new ParameterError(
    'draft_logits',
    `draft_logits has -Infinity for the token ${tokens[place]} at place ${place} of draft_input_ids, which could not be drawn then.`,
  );
}

/** The rules of mayDraft, for those who ask for a draft by name. */
function whyItCannotHaveOne(inputs: Record<string, Tensor>): string | null {
  const isOn = (name: string) => Number(inputs[name]?.data[0] ?? 0) > 0;
  if (Number(inputs.beam_width?.data[0] ?? 1) > 1) return 'beams choose among the tokens of each other';
  if ((inputs.logits_post_processor_name?.data.length ?? 0) > 0) {
    return 'a logits post-processor is promised one row of logits a step';
  }
  if ((inputs.prompt_embedding_table?.data.length ?? 0) > 0) {
    return 'requests with embeddings of their own have no drafts';
  }
  if (isOn('return_generation_logits')) return 'generation logits are returned one row a step';
  return null;
}
