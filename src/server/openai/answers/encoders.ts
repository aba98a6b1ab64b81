import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

export const usage = z.object({
  prompt_tokens: about(z.int(), 'Tokens of all inputs, special tokens included.'),
  total_tokens: about(z.int(), 'The same.'),
});
export const model = about(z.string(), 'The model that answered.');

const embeddingList = component(
  'EmbeddingList',
  z.object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        object: z.literal('embedding'),
        index: about(z.int(), 'Which of the inputs.'),
        embedding: about(
          z.union([z.array(z.number()), z.string()]),
          'Numbers, or base64: of 32-bit floats in little-endian order, or of the bytes of `output_dtype`.',
        ),
      }),
    ),
    model,
    usage,
  }),
  'Embeddings in the order of the inputs.',
);

const rankedList = (document: z.ZodType) =>
  z.array(
    z.object({
      index: about(z.int(), 'Which of the documents.'),
      document,
      relevance_score: about(z.number(), "A cross-encoder's score, else the cosine of two embeddings."),
    }),
  );

const ranking = component(
  'Ranking',
  z.object({
    id: z.string(),
    object: z.literal('list'),
    model,
    results: rankedList(
      about(z.object({ text: z.string() }).optional(), 'Unless `return_documents` is false.'),
    ),
    data: about(
      rankedList(about(z.string().optional(), 'If `return_documents` is true.')),
      "The same in the form of Voyage's API.",
    ),
    usage,
  }),
  'Documents, the best first.',
);

const scoreList = component(
  'ScoreList',
  z.object({
    id: z.string(),
    object: z.literal('list'),
    created: about(z.int(), 'Seconds since 1970.'),
    model,
    data: z.array(
      z.object({
        index: about(z.int(), 'Which of the pairs.'),
        object: z.literal('score'),
        score: about(z.number(), "A cross-encoder's score, else the cosine of two embeddings."),
      }),
    ),
    usage,
  }),
  'Scores in the order of the pairs.',
);

export const refusals = () => errors(400, 401, 404, 413, 429, 500, 503);

export function embeddingResponses(): Responses {
  return { 200: jsonAnswer('The embeddings.', embeddingList), ...refusals() };
}

export function rerankResponses(): Responses {
  return { 200: jsonAnswer('The ranking.', ranking), ...refusals() };
}

export function scoreResponses(): Responses {
  return { 200: jsonAnswer('The scores.', scoreList), ...refusals() };
}

export function poolingResponses(): Responses {
  const one = z.object({
    index: about(z.int(), 'Which of the inputs.'),
    object: z.literal('pooling'),
    data: about(
      z.union([z.array(z.number()), z.array(z.array(z.number())), z.string()]),
      'Numbers, or a list of them for each token, or base64 of 32-bit floats in little-endian order, one behind the other.',
    ),
  });
  const answer = z.object({
    id: z.string(),
    object: z.literal('list'),
    created: about(z.int(), 'Seconds since 1970.'),
    model,
    data: z.array(one),
    usage,
  });
  return { 200: jsonAnswer('What the task gives of each input.', answer), ...refusals() };
}
