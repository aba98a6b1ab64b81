import { classifyTexts, predict } from '../encoders/classify.js';
import { classifyRequestSchema, predictRequestSchema } from '../schemas/classify.js';
import { defineRoute } from '../services.js';

const answers = () => import('../answers/encoders.js');

export const classifyRoute = defineRoute({
  method: 'post',
  path: '/classify',
  tags: ['Encoders'],
  summary: "Gives texts scores of a classifier's labels",
  description:
    "In vLLM's form: the likeliest label of each text, and the scores of all, in the order of `labels`. They add up to 1, or are from 0 to 1 each where any number of labels may be right, as the model's `problem_type` says.",
  body: classifyRequestSchema,
  examples: { Texts: { input: ['The cat sits outside.', 'A man plays the guitar.'] } },
  responses: async () => (await answers()).classifyResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => classifyTexts(context, body, exchange),
});

export const predictRoute = defineRoute({
  method: 'post',
  path: '/predict',
  tags: ['Encoders'],
  summary: "Gives texts, or pairs of them, scores of a classifier's labels",
  description:
    'In the form of text-embeddings-inference: the labels with their scores, the likeliest first. `inputs` that is a list of two texts is one pair.',
  body: predictRequestSchema,
  examples: {
    'A text': { inputs: 'The cat sits outside.' },
    'A pair': { inputs: ['The cat sits outside.', 'A cat is not inside.'] },
    'A batch': { inputs: [['The cat sits outside.'], ['A man plays the guitar.']], raw_scores: true },
  },
  responses: async () => (await answers()).predictResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => predict(context, body, exchange),
});
