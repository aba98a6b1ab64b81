import * as z from 'zod';
import { component } from '../../../schemas/fields.js';
import { readJson } from '../../web/bodies/read-json.js';
import { ApiError } from '../../web/errors.js';
import type { Route } from '../../web/route.js';
import { defineRoute, type OpenAiServices } from '../services.js';
import { chatCompletionsRoute } from './chat-completions.js';
import { completionsRoute } from './completions.js';
import { embeddingsRoute, rerankRoute, scoreRoute } from './encoders.js';

/** Routes by a field that only their bodies have, in the order in which vLLM looks for them. */
const BY_FIELD: readonly (readonly [field: string, route: Route<OpenAiServices>])[] = [
  ['messages', chatCompletionsRoute],
  ['prompt', completionsRoute],
  ['input', embeddingsRoute],
  ['text_1', scoreRoute],
  ['documents', rerankRoute],
];

const invocationSchema = component(
  'Invocation',
  z.looseObject({}),
  'The body of one of the other routes, which its fields tell.',
);

const described = defineRoute({
  method: 'post',
  path: '/invocations',
  tags: ['Generation'],
  summary: 'Takes the bodies of several routes, for SageMaker',
  description:
    'A body with `messages` is answered as by /v1/chat/completions, with `prompt` as by /v1/completions, with `input` as by ' +
    '/v1/embeddings, with `text_1` as by /v1/score, with `documents` as by /v1/rerank.',
  body: invocationSchema,
  examples: {
    'A chat': { messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 16 },
  },
  responses: async () => (await import('../answers/server.js')).invocationResponses(),
  handle: () => Promise.reject(new Error('The route is found by the body.')),
});

export const invocationsRoute: Route<OpenAiServices> = {
  ...described,
  handle: async (c, context) => {
    const json = await readJson(c, c.get('memory'));
    const body = typeof json === 'object' && json !== null && !Array.isArray(json) ? json : {};
    const found = BY_FIELD.find(([field]) => Object.hasOwn(body, field));
    if (found !== undefined) return found[1].handleJson!(json, c, context);
    const fields = BY_FIELD.map(([field, { path }]) => `'${field}' (${path})`).join(', ');
    throw new ApiError(400, `The body must be an object with one of these fields: ${fields}.`, {
      code: 'missing_required_parameter',
    });
  },
};
