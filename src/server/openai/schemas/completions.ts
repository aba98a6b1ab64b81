import * as z from 'zod';
import { commonFields } from './common.js';
import { about, component, count, optional, tokenList } from './fields.js';

const MAX_PROMPTS = 256;

const promptSchema = about(
  z
    .union(
      [
        z.string().transform((one) => [one]),
        tokenList(1).transform((one) => [one]),
        z.array(tokenList(1)).min(1),
        z.array(z.string()).min(1),
      ],
      { error: 'expected a string, token ids, or a list of either, none of them empty' },
    )
    .refine((prompts) => prompts.length <= MAX_PROMPTS, {
      error: ({ input }) =>
        `it holds ${(input as unknown[]).length} prompts, at most ${MAX_PROMPTS} are taken`,
    }),
  {
    description: `The text that is gone on with: a string, token ids, or up to ${MAX_PROMPTS} of either.`,
    examples: ['Once upon a time'],
  },
);

export const completionRequestSchema = component(
  'CompletionRequest',
  z.strictObject({
    ...commonFields,
    prompt: promptSchema,
    max_tokens: count(0, { description: 'Most tokens of the answer; 0 only with `echo`.', default: 16 }),
    echo: optional(z.boolean(), { description: 'Puts the prompt before the answer.', default: false }),
    logprobs: optional(
      z.int().min(-1),
      'Log-probabilities of the tokens, and of so many of the most probable ones at each place (-1: all); with `echo` of the prompt too.',
    ),
    suffix: optional(
      z.string(),
      'The text behind the one to be filled in, for models whose vocabulary has tokens for that.',
    ),
  }),
  "OpenAI's fields, and those of vLLM for what the engine can do besides.",
);

export type CompletionRequest = z.output<typeof completionRequestSchema>;
