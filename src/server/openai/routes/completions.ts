import { completions } from '../completions.js';
import { completionRequestSchema } from '../schemas/completions.js';
import { defineRoute } from '../services.js';

export const completionsRoute = defineRoute({
  method: 'post',
  path: '/v1/completions',
  tags: ['Generation'],
  summary: 'Goes on with a text',
  description:
    'The prompt is taken as it is, without a chat template. Several prompts are answered side by side: choice ' +
    '`p * n + k` is the k-th answer to prompt p.',
  body: completionRequestSchema,
  examples: {
    'A text': { prompt: 'Once upon a time', max_tokens: 32 },
    'Token ids': { prompt: [72, 101, 108], max_tokens: 8, logprobs: 2 },
  },
  responses: async () => (await import('../answers/completions.js')).completionResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => completions(context, body, exchange),
});
