import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { about, ignored } from '../../../schemas/fields.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { ApiError } from '../../web/errors.js';
import { compactResponse } from '../responses/compact-response.js';
import { countInputTokens, createResponse } from '../responses/create-response.js';
import { eventsAnswer } from '../responses/event-log.js';
import { inputItemList } from '../responses/item-list.js';
import { responseJson } from '../responses/response-json.js';
import { ownStore } from '../responses/responses-context.js';
import { compactRequestSchema, inputTokensSchema, responseRequestSchema } from '../schemas/responses.js';
import { defineRoute } from '../services.js';

const tags = ['Responses'] as const;
const params = z.object({
  id: about(z.string(), { description: 'The id of a response.', examples: ['resp_5f1c'] }),
});
const answers = () => import('../answers/responses.js');

/** Parameters of a list of items. */
export const listFields = {
  order: about(z.enum(['asc', 'desc']).default('desc'), 'asc: the oldest first.'),
  limit: about(z.coerce.number().int().min(1).max(100).default(20), 'Items of a page.'),
  after: about(z.string().optional(), 'The id of the item after which the page begins.'),
};

const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

export const createResponseRoute = defineRoute({
  method: 'post',
  path: '/v1/responses',
  tags,
  summary: 'Answers a text or the items of a conversation',
  description:
    'The response is kept in memory unless `store` is false: the newest 1024, up to 64 MiB, the ones used longest ago ' +
    'make room first. It is found by requests with the same API key only. With `stream` the answer comes as server-sent events; each has a `sequence_number`. A client that ' +
    'leaves ends its response, which is then not kept.',
  body: responseRequestSchema,
  examples: {
    'A question': { input: 'What is the capital of France?', max_output_tokens: 64 },
    'As a stream': {
      instructions: 'Answer in one word.',
      input: [{ role: 'user', content: 'Capital of France?' }],
      stream: true,
    },
    'With a function': { input: 'Is it raining in Paris?', tools: [weather], store: false },
  },
  responses: async () => (await answers()).createResponses(),
  loadsModel: true,
  handle: ({ body, json, exchange }, context) => createResponse(context, body, json, exchange),
});

export const inputTokensRoute = defineRoute({
  method: 'post',
  path: '/v1/responses/input_tokens',
  tags,
  summary: 'Counts the tokens of the prompt that a response would have',
  description: 'The prompt may be longer than the model takes.',
  body: inputTokensSchema,
  examples: { 'A question': { input: 'What is the capital of France?' } },
  responses: async () => (await answers()).inputTokensResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => countInputTokens(context, body, exchange),
});

export const compactRoute = defineRoute({
  method: 'post',
  path: '/v1/responses/compact',
  tags,
  summary: 'Replaces a conversation that has become long',
  description:
    'The output stands for the conversation as the input of later requests: the messages of the user, the system and the developer as ' +
    'they are, the newest of them up to a quarter of the context, and a summary by the model in an item of type `compaction`.',
  body: compactRequestSchema,
  examples: {
    'A conversation': {
      input: [
        { role: 'user', content: 'Capital of France?' },
        { role: 'assistant', content: 'Paris.' },
      ],
    },
  },
  responses: async () => (await answers()).compactResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => compactResponse(context, body, exchange),
});

export const responseRoute = defineRoute({
  method: 'get',
  path: '/v1/responses/{id}',
  tags,
  summary: 'Shows a stored response, or one that is being made',
  params,
  query: z.strictObject({
    stream: about(
      z.enum(['true', 'false']).optional(),
      "true: the events of a response made with 'background' and 'stream', up to its end.",
    ),
    starting_after: about(
      z.coerce.number().int().min(-1).max(MAX_INT32).optional(),
      "With 'stream': the number of the event after which they begin. Not given: the first is first.",
    ),
    include_obfuscation: ignored(),
    include: ignored(),
    'include[]': ignored(),
  }),
  responses: async () => (await answers()).storedResponses(),
  handle: async ({ params: { id }, query, exchange }, context) => {
    const store = ownStore(context, exchange.terms);
    if (query.stream === 'true') {
      return eventsAnswer(await store.events(id), query.starting_after ?? -1, context.eventStream, exchange);
    }
    const response = await store.responses.shown(id);
    store.showResponse(response);
    return jsonAnswer(responseJson(response));
  },
});

export const deleteResponseRoute = defineRoute({
  method: 'delete',
  path: '/v1/responses/{id}',
  tags,
  summary: 'Forgets a stored response',
  description:
    'Responses that went on with it keep their conversation. One that is made in the background is cancelled first.',
  params,
  responses: async () => (await answers()).deletedResponses(),
  handle: async ({ params: { id }, exchange }, { responses }) => {
    await responses.of(exchange.terms.caller).delete(id);
    return Response.json({ id, object: 'response', deleted: true });
  },
});

export const inputItemsRoute = defineRoute({
  method: 'get',
  path: '/v1/responses/{id}/input_items',
  tags,
  summary: 'Lists what a response answered, the conversation before it included',
  params,
  query: z.strictObject({ ...listFields, include: ignored(), 'include[]': ignored() }),
  responses: async () => (await answers()).itemListResponses(),
  handle: async ({ params: { id }, query, exchange }, context) =>
    jsonAnswer(await inputItemList(ownStore(context, exchange.terms), id, query)),
});

export const cancelResponseRoute = defineRoute({
  method: 'post',
  path: '/v1/responses/{id}/cancel',
  tags,
  summary: 'Ends a response that is being made',
  description:
    'It keeps what it has and its status is `cancelled`; a stream of it ends with `response.incomplete`.',
  params,
  responses: async () => (await answers()).cancelledResponses(),
  handle: async ({ params: { id }, exchange }, context) => {
    const store = ownStore(context, exchange.terms);
    const response = await store.responses.cancel(id);
    if (response !== null) {
      store.showResponse(response);
      return jsonAnswer(responseJson(response));
    }
    const { status } = (await store.responses.get(id)).response;
    throw new ApiError(400, `The response '${id}' cannot be cancelled: its status is '${status}'.`, {
      code: 'response_not_active',
    });
  },
});
