import { infill } from '../infill.js';
import { infillRequestSchema } from '../schemas/infill.js';
import { defineRoute } from '../services.js';

export const infillRoute = defineRoute({
  method: 'post',
  path: '/infill',
  tags: ['Generation'],
  summary: "Fills a gap in a text, in the form of llama.cpp's server",
  description: 'For models whose vocabulary has tokens for that, as those for code have.',
  body: infillRequestSchema,
  examples: {
    'A function': { input_prefix: 'def add(a, b):\n    return ', input_suffix: '\n', n_predict: 16 },
  },
  responses: async () => (await import('../answers/completions.js')).infillResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => infill(context, body, exchange),
});
