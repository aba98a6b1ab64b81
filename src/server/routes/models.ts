import * as z from 'zod';
import { withAdapters } from '../../serving/adapters/served-adapters.js';
import { modelInfo, modelPage } from '../anthropic/models.js';
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
  handle: ({ speaksAnthropic }, context) => {
    const models = withAdapters(context.models.list());
    return Response.json(
      speaksAnthropic ? modelPage(models) : { object: 'list', data: models.map(modelObject) },
    );
  },
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
  handle: ({ params, speaksAnthropic }, context) => {
    const model = findModel(context, params.id);
    return Response.json(speaksAnthropic ? modelInfo(model) : modelObject(model));
  },
});
