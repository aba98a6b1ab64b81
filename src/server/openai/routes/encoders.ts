import { embeddings } from '../encoders/embeddings.js';
import { pooling } from '../encoders/pooling.js';
import { rerank, score } from '../encoders/rankings.js';
import { embeddingRequestSchema } from '../schemas/embeddings.js';
import { poolingRequestSchema } from '../schemas/pooling.js';
import { rerankRequestSchema, scoreRequestSchema } from '../schemas/rankings.js';
import { defineRoute } from '../services.js';

export const embeddingsRoute = defineRoute({
  method: 'post',
  path: '/v1/embeddings',
  tags: ['Encoders'],
  summary: 'Embeds texts',
  description: 'The same text has the same embedding to the bit, alone and together with any others.',
  body: embeddingRequestSchema,
  examples: {
    'A text': { input: 'The cat sits outside.' },
    Texts: { input: ['The cat sits outside.', 'A man plays the guitar.'], encoding_format: 'base64' },
  },
  responses: async () => (await import('../answers/encoders.js')).embeddingResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => embeddings(context, body, exchange),
});

export const rerankRoute = defineRoute({
  method: 'post',
  path: '/v1/rerank',
  tags: ['Encoders'],
  summary: 'Sorts documents by how well they answer a query',
  description: 'By the score of a cross-encoder, or the cosine of two embeddings where the model embeds.',
  body: rerankRequestSchema,
  examples: {
    'A query': { query: 'Who sits outside?', documents: ['A man plays.', 'The cat sits outside.'], top_n: 1 },
  },
  responses: async () => (await import('../answers/encoders.js')).rerankResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => rerank(context, body, exchange),
});

export const scoreRoute = defineRoute({
  method: 'post',
  path: '/v1/score',
  tags: ['Encoders'],
  summary: 'Scores pairs of texts',
  description: 'One text with each of several, or pairs of two lists of the same length.',
  body: scoreRequestSchema,
  examples: {
    'One to many': { text_1: 'Who sits outside?', text_2: ['A man plays.', 'The cat sits outside.'] },
  },
  responses: async () => (await import('../answers/encoders.js')).scoreResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => score(context, body, exchange),
});

export const poolingRoute = defineRoute({
  method: 'post',
  path: '/pooling',
  tags: ['Encoders'],
  summary: 'Gives what a model makes of texts, in the form of vLLM',
  description:
    'Embeddings, scores of labels, or vectors or weights of tokens, by `task`; a task that the model lacks is refused.',
  body: poolingRequestSchema,
  examples: {
    'A text': { input: 'The cat sits outside.' },
    'Vectors of tokens': { input: 'The cat sits outside.', task: 'token_embed' },
  },
  responses: async () => (await import('../answers/encoders.js')).poolingResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => pooling(context, body, exchange),
});
