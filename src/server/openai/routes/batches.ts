import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { batchJson } from '../../batches/batch-object.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { pageOf } from '../../web/page.js';
import { batchRequestSchema } from '../schemas/files.js';
import { defineRoute } from '../services.js';

const tags = ['Batches'] as const;
const answers = () => import('../answers/files.js');
const params = z.object({
  id: about(z.string(), { description: 'The id of a batch.', examples: ['batch_5f1c'] }),
});

export const createBatchRoute = defineRoute({
  method: 'post',
  path: '/v1/batches',
  tags,
  summary: 'Answers the requests of a file',
  description:
    'They are answered as if they were sent to the endpoint one by one, after the requests of clients that wait. An ' +
    'input with a line that is no request fails as a whole, with the numbers of such lines, before anything is asked.',
  body: batchRequestSchema,
  examples: {
    'A file': {
      input_file_id: 'file-5f1c',
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    },
  },
  responses: async () => (await answers()).batchResponses(),
  handle: async ({ body, exchange }, { batches }) => {
    const batch = await batches.of(exchange.terms.caller).create({
      inputFileId: body.input_file_id,
      endpoint: body.endpoint,
      completionWindow: body.completion_window,
      metadata: body.metadata ?? null,
      outputLifeSeconds: body.output_expires_after?.seconds ?? null,
    });
    return Response.json(batchJson(batch));
  },
});

export const batchesRoute = defineRoute({
  method: 'get',
  path: '/v1/batches',
  tags,
  summary: 'Lists batches, the newest first',
  query: z.strictObject({
    limit: about(z.coerce.number().int().min(1).max(100).default(20), 'Batches of a page.'),
    after: about(z.string().optional(), 'The id of the batch after which the page begins.'),
  }),
  responses: async () => (await answers()).batchListResponses(),
  handle: async ({ query, exchange }, { batches }) => {
    const own = await batches.of(exchange.terms.caller).list();
    return jsonAnswer(pageOf(own.reverse(), query, batchJson));
  },
});

export const batchRoute = defineRoute({
  method: 'get',
  path: '/v1/batches/{id}',
  tags,
  summary: 'Shows a batch',
  params,
  responses: async () => (await answers()).batchResponses(),
  handle: async ({ params: { id }, exchange }, { batches }) =>
    Response.json(batchJson(await batches.of(exchange.terms.caller).get(id))),
});

export const cancelBatchRoute = defineRoute({
  method: 'post',
  path: '/v1/batches/{id}/cancel',
  tags,
  summary: 'Ends a batch with the answers that it has',
  description: 'Its status is `cancelling` until its files are there.',
  params,
  responses: async () => (await answers()).batchResponses(),
  handle: async ({ params: { id }, exchange }, { batches }) =>
    Response.json(batchJson(await batches.of(exchange.terms.caller).cancel(id))),
});
