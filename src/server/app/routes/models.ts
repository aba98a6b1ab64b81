import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { withAdapters } from '../../../serving/adapters/served-adapters.js';
import { findModel } from '../../answering/find-model.js';
import { ANTHROPIC_VERSION } from '../../anthropic/errors.js';
import { modelInfo, modelPage, storedModelInfo } from '../../anthropic/models.js';
import { expectedModelObject, modelObject, storedModelObject } from '../../openai/models.js';
import { defineRoute } from '../server-context.js';

export const modelsRoute = defineRoute({
  method: 'get',
  path: '/v1/models',
  tags: ['Models'],
  summary: 'Lists the models that are served, and those that are loaded when they are asked for',
  responses: async () => (await import('../answers.js')).modelListResponses(),
  handle: async ({ header }, { models, life }) => {
    const served = withAdapters(models.list());
    const stored = (await life?.store.list()) ?? [];
    const others = stored.filter(({ name }) => models.find(name) === undefined);
    if (header(ANTHROPIC_VERSION) !== undefined)
      return Response.json(modelPage([...served.map(modelInfo), ...others.map(storedModelInfo)]));
    const { names = [], since = 0 } = models.expected ?? {};
    const expected = names.filter((name) => models.find(name) === undefined);
    const data = [
      ...served.map(modelObject),
      ...others.map(storedModelObject),
      ...expected.map((name) => expectedModelObject(name, since)),
    ];
    return Response.json({ object: 'list', data });
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
  responses: async () => (await import('../answers.js')).modelResponses(),
  handle: async ({ params: { id }, header }, context) => {
    const isAnthropic = header(ANTHROPIC_VERSION) !== undefined;
    const isServed = context.models.find(id) !== undefined;
    const stored = isServed ? null : await context.life?.store.find(id);
    if (stored) return Response.json(isAnthropic ? storedModelInfo(stored) : storedModelObject(stored));
    const { expected } = context.models;
    // A look is no wish.
    if (!isServed && expected?.has(id)) return Response.json(expectedModelObject(id, expected.since));
    const model = findModel(context, id);
    return Response.json(isAnthropic ? modelInfo(model) : modelObject(model));
  },
});
