import { embedAll, sparseEmbeddings } from '../encoders/token-outputs.js';
import { tokenOutputSchema } from '../schemas/token-outputs.js';
import { defineRoute } from '../services.js';

const answers = () => import('../answers/encoders.js');

export const embedSparseRoute = defineRoute({
  method: 'post',
  path: '/embed_sparse',
  tags: ['Encoders'],
  summary: 'Gives the tokens of texts weights',
  description:
    'In the form of text-embeddings-inference, with models that have a layer for it (`sparse_linear`, as BGE-M3): the tokens of each text whose weight is above 0, special tokens left out; of a token that is there more than once the greatest weight.',
  body: tokenOutputSchema,
  examples: { Texts: { inputs: ['The cat sits outside.', 'A man plays the guitar.'] } },
  responses: async () => (await answers()).embedSparseResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => sparseEmbeddings(context, body, exchange),
});

export const embedAllRoute = defineRoute({
  method: 'post',
  path: '/embed_all',
  tags: ['Encoders'],
  summary: 'Gives each token of texts a vector',
  description:
    'In the form of text-embeddings-inference, with models that have a layer for it (`colbert_linear`, as BGE-M3): a vector of length 1 for each token of a text but the first, for late interaction.',
  body: tokenOutputSchema,
  examples: { 'A text': { inputs: 'The cat sits outside.' } },
  responses: async () => (await answers()).embedAllResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => embedAll(context, body, exchange),
});
