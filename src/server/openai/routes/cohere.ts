import { cohereEmbed, cohereRerank } from '../encoders/cohere.js';
import { cohereEmbedSchema, cohereRerankSchema } from '../schemas/cohere.js';
import { defineRoute } from '../services.js';

export const cohereEmbedRoute = defineRoute({
  method: 'post',
  path: '/v2/embed',
  tags: ['Encoders'],
  summary: "Embeds texts, in the form of Cohere's API",
  description: 'Texts that are too long are cut, unless `truncate` is NONE.',
  body: cohereEmbedSchema,
  examples: {
    Texts: {
      texts: ['The cat sits outside.', 'A man plays the guitar.'],
      input_type: 'search_document',
      embedding_types: ['float', 'int8'],
    },
  },
  responses: async () => (await import('../answers/encoders.js')).cohereEmbedResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => cohereEmbed(context, body, exchange),
});

export const cohereRerankRoute = defineRoute({
  method: 'post',
  path: '/v2/rerank',
  tags: ['Encoders'],
  summary: "Sorts documents by how well they answer a query, in the form of Cohere's API",
  description: 'Documents that are too long are cut.',
  body: cohereRerankSchema,
  examples: {
    'A query': { query: 'Who sits outside?', documents: ['A man plays.', 'The cat sits outside.'], top_n: 1 },
  },
  responses: async () => (await import('../answers/encoders.js')).cohereRerankResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => cohereRerank(context, body, exchange),
});
