import * as z from 'zod';
import { withAdapters } from '../../serving/adapters/served-adapters.js';
import { modelObject } from '../openai/models.js';
import { findModel } from '../openai/route-context.js';
import { about } from '../openai/schemas/fields.js';
import { defineRoute } from './route.js';

export const modelsRoute = defineRoute({
  method: 'get',
  path: '/v1/models',
  tags: ['Models'],
  summary: 'Lists the models that are served',
  responses: async () => (await import('../openai/answers/models.js')).modelListResponses(),
  handle: (_, { models }) =>
    Response.json({ object: 'list', data: withAdapters(models.list()).map(modelObject) }),
});

export const modelRoute = defineRoute({
  method: 'get',
  path: '/v1/models/{id}',
  // Names may hold slashes, as those of the Hugging Face hub do.
  pattern: '/v1/models/:id{.+}',
  tags: ['Models'],
  summary: 'Shows one model',
  params: z.object({ id: about(z.string(), 'The name of the model; slashes may be written as they are.') }),
  responses: async () => (await import('../openai/answers/models.js')).modelResponses(),
  handle: ({ params }, context) => Response.json(modelObject(findModel(context, params.id))),
});
