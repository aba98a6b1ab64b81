import * as z from 'zod';
import { about, component, count, optional, textsOrTokens } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { responseFormat } from '../../answering/guides.js';
import { commonFields } from '../../answering/schemas/common.js';
import { OTHER_COMPLETION_FIELDS } from '../../answering/schemas/other-fields.js';

const MAX_PROMPTS = 256;

const promptSchema = about(textsOrTokens(MAX_PROMPTS, 'prompts'), {
  description: `The text that is gone on with: a string, token ids, or up to ${MAX_PROMPTS} of either.`,
  examples: ['Once upon a time'],
});

export const completionRequestSchema = component(
  'CompletionRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      prompt: promptSchema,
      max_tokens: count(0, { description: 'Most tokens of the answer; 0 only with `echo`.', default: 16 }),
      add_special_tokens: optional(z.boolean(), {
        description: 'Adds the tokens that the model wants around a text to a prompt of text.',
        default: true,
      }),
      echo: optional(z.boolean(), { description: 'Puts the prompt before the answer.', default: false }),
      logprobs: optional(
        z.int().min(-1),
        'Log-probabilities of the tokens, and of this number of the most probable ones at each place (-1: all); with `echo` of the prompt too.',
      ),
      response_format: optional(responseFormat, 'What the answer has to look like: any text, or JSON.'),
      suffix: optional(
        z.string(),
        'The text after the one to be filled in, for models whose vocabulary has tokens for that.',
      ),
    }),
    OTHER_COMPLETION_FIELDS,
  ),
  "OpenAI's fields, and those of vLLM for what the engine can do besides.",
);

export type CompletionRequest = z.output<typeof completionRequestSchema>;
