import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { about, ignored, optional, textsOrTokens } from '../../../schemas/fields.js';

/** Most inputs, as in OpenAI's API. */
export const MAX_INPUTS = 2048;

export const model = optional(
  z.string(),
  'A name that GET /v1/models lists. Not given: the first that can do it.',
);

const truncatePromptTokens = optional(
  z
    .int()
    .min(-1)
    .max(MAX_INT32)
    .refine((value) => value !== 0, 'expected -1 or at least 1'),
  'Cuts longer inputs at their end to this number of tokens, special tokens included; -1: to what the model takes. Not given: a longer input is an error. Of a pair of texts the longer one is cut first.',
);

/** Fields of every route for encoders but Cohere's. */
export const commonFields = {
  model,
  truncate_prompt_tokens: truncatePromptTokens,
  user: ignored('A name for the end user. Accepted; it has no bearing on the answer.'),
};

export const truncationSide = optional(
  z.enum(['left', 'right']),
  "The side of a longer text that is cut: vLLM's name. Default: right.",
);

/** Other names of "to what the model takes". */
export const truncationFields = {
  truncation: optional(z.boolean(), "Voyage's way to say that longer inputs are cut at their end."),
  truncate: optional(z.boolean(), "The same in Jina's API and text-embeddings-inference."),
};

/** How text-embeddings-inference says which inputs are cut. */
export const cuttingFields = {
  truncate: optional(z.boolean(), {
    description: 'Cuts longer inputs to what the model takes.',
    default: false,
  }),
  truncation_direction: optional(z.enum(['left', 'right', 'Left', 'Right']), {
    description: 'The side of a longer text that is cut.',
    default: 'right',
  }),
};

export const promptName = optional(
  z.string().max(256),
  "Name of one of the model's prompts, which is put in front of the texts, as in text-embeddings-inference.",
);

/** The texts of a request. @param lists a schema of lists of texts, or of what may stand in their place @param how which forms they may have, besides token ids */
export function inputOf<T = string>(lists?: () => z.ZodType<(T | string)[]>, how?: string) {
  return about(textsOrTokens(MAX_INPUTS, 'inputs', lists?.()), {
    description: `The texts: one, or up to ${MAX_INPUTS}${how === undefined ? '' : `, ${how}`}. Token ids are taken as they are: no special tokens are put around them.`,
    examples: ['The cat sits outside.'],
  });
}

export const input = inputOf();

export const dimensions = optional(
  z.int().min(1).max(MAX_INT32),
  'Values of each embedding, for models that were trained to be cut (Matryoshka); they are brought to length 1 again.',
);
