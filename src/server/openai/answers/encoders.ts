import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const usage = z.object({
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

const refusals = () => errors(400, 401, 404, 413, 429, 500, 503);

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
      'Numbers, or a list of them for each token, or base64 of 32-bit floats in little-endian order, one after the other.',
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

export function embedSparseResponses(): Responses {
  const weight = z.object({
    index: about(z.int(), 'The id of a token.'),
    value: about(z.number(), 'Its weight, above 0.'),
  });
  const answer = z.array(about(z.array(weight), 'The weights of a text, by ascending ids.'));
  return { 200: jsonAnswer('The weights of each text.', answer), ...refusals() };
}

export function embedAllResponses(): Responses {
  const vectors = about(z.array(z.array(z.number())), 'The vectors of a text, each of length 1.');
  return { 200: jsonAnswer('The vectors of each text.', z.array(vectors)), ...refusals() };
}

export function classifyResponses(): Responses {
  const one = z.object({
    index: about(z.int(), 'Which of the inputs.'),
    label: about(z.string(), 'The label with the greatest score.'),
    probs: about(z.array(z.number()), 'The score of each label, in the order of `labels`.'),
    num_classes: about(z.int(), 'Number of labels.'),
  });
  const answer = component(
    'Classification',
    z.object({
      id: z.string(),
      object: z.literal('list'),
      created: about(z.int(), 'Seconds since 1970.'),
      model,
      labels: about(z.array(z.string()), 'Names of the labels.'),
      data: z.array(one),
      usage,
    }),
    'Scores of labels, in the order of the inputs.',
  );
  return { 200: jsonAnswer('The scores.', answer), ...refusals() };
}

export function predictResponses(): Responses {
  const prediction = z.object({ score: z.number(), label: z.string() });
  const ofOne = about(z.array(prediction), 'The labels of a text, the likeliest first.');
  const answer = z.union([ofOne, about(z.array(ofOne), 'Those of each text of a batch.')]);
  return { 200: jsonAnswer('The scores.', answer), ...refusals() };
}

export function cohereEmbedResponses(): Responses {
  const rows = (values: z.ZodType) => z.array(values).optional();
  const numbers = rows(z.array(z.number()));
  const answer = z.object({
    id: z.string(),
    embeddings: about(
      z.object({
        float: numbers,
        int8: numbers,
        uint8: numbers,
        binary: numbers,
        ubinary: numbers,
        base64: rows(z.string()),
      }),
      'The embeddings in the order of the texts, in each type that was asked for.',
    ),
    texts: z.array(z.string()),
    meta: z.object({
      api_version: z.object({ version: z.literal('2') }),
      billed_units: z.object({ input_tokens: z.int() }),
    }),
    response_type: z.literal('embeddings_by_type'),
  });
  return { 200: jsonAnswer('The embeddings.', answer), ...refusals() };
}

export function cohereRerankResponses(): Responses {
  const answer = z.object({
    id: z.string(),
    results: z.array(
      z.object({
        index: about(z.int(), 'Which of the documents.'),
        document: about(z.object({ text: z.string() }).optional(), 'If `return_documents` is true.'),
        relevance_score: about(z.number(), "A cross-encoder's score, else the cosine of two embeddings."),
      }),
    ),
    meta: z.object({
      api_version: z.object({ version: z.literal('2') }),
      billed_units: z.object({ search_units: z.int() }),
      tokens: z.object({ input_tokens: z.int() }),
    }),
  });
  return { 200: jsonAnswer('The ranking.', answer), ...refusals() };
}
