import * as z from 'zod';
import { about, component, ignored, optional } from '../../../schemas/fields.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { metadata } from '../../web/metadata.js';
import { conversationItemList, itemListJson } from '../responses/item-list.js';
import { itemJson } from '../responses/response-json.js';
import { ownStore } from '../responses/responses-context.js';
import { storedItems } from '../responses/stored-items.js';
import { inputItem, MAX_ITEMS } from '../schemas/response-items.js';
import { defineRoute } from '../services.js';
import { listFields } from './responses.js';

const MAX_TEXTS = 'Up to 16 texts by names, which come back with the conversation.';

const createConversationSchema = component(
  'CreateConversationRequest',
  z.object({
    items: optional(z.array(inputItem).max(MAX_ITEMS), 'Items that it begins with.'),
    metadata: optional(metadata, MAX_TEXTS),
  }),
  'A conversation to keep.',
);

const updateConversationSchema = component(
  'UpdateConversationRequest',
  z.object({
    metadata: about(metadata.nullable(), `${MAX_TEXTS} They take the place of those that it has.`),
  }),
  'What is changed of a conversation.',
);

const createItemsSchema = component(
  'CreateItemsRequest',
  z.object({ items: about(z.array(inputItem).min(1).max(MAX_ITEMS), 'Items that are put at its end.') }),
  'Items for a conversation.',
);

const tags = ['Conversations'] as const;
const id = about(z.string(), { description: 'The id of a conversation.', examples: ['conv_5f1c'] });
const params = z.object({ id });
const itemParams = z.object({ id, item: about(z.string(), 'The id of an item.') });
const answers = () => import('../answers/conversations.js');
const itemLists = async () => (await import('../answers/responses.js')).itemListResponses();

/** What an item may have besides: all of it is there, where the request that made it asked for it. */
const include = { include: ignored(), 'include[]': ignored() };

export const createConversationRoute = defineRoute({
  method: 'post',
  path: '/v1/conversations',
  tags,
  summary: 'Makes a conversation',
  description:
    'Requests of `/v1/responses` with its id in `conversation` answer its items, and add theirs. It is kept in memory next to responses, within ' +
    'the same limits, and found by requests with the same API key only. It has up to 4096 items and 16 MiB.',
  body: createConversationSchema,
  mayLackBody: true,
  examples: { 'With a message': { items: [{ type: 'message', role: 'user', content: 'Hello!' }] } },
  responses: async () => (await answers()).conversationResponses(),
  handle: async ({ body, exchange }, context) => {
    const store = ownStore(context, exchange.terms);
    const items = await storedItems(body.items ?? [], store);
    return Response.json((await store.conversations.create(body.metadata ?? {}, items)).toJson());
  },
});

export const conversationRoute = defineRoute({
  method: 'get',
  path: '/v1/conversations/{id}',
  tags,
  summary: 'Shows a conversation',
  params,
  responses: async () => (await answers()).conversationResponses(),
  handle: async ({ params: { id }, exchange }, context) =>
    Response.json((await ownStore(context, exchange.terms).conversations.get(id)).toJson()),
});

export const updateConversationRoute = defineRoute({
  method: 'post',
  path: '/v1/conversations/{id}',
  tags,
  summary: 'Changes the metadata of a conversation',
  params,
  body: updateConversationSchema,
  examples: { Metadata: { metadata: { topic: 'geese' } } },
  responses: async () => (await answers()).conversationResponses(),
  handle: async ({ params: { id }, body, exchange }, context) => {
    const { conversations } = ownStore(context, exchange.terms);
    return Response.json((await conversations.update(id, body.metadata ?? {})).toJson());
  },
});

export const deleteConversationRoute = defineRoute({
  method: 'delete',
  path: '/v1/conversations/{id}',
  tags,
  summary: 'Forgets a conversation',
  description: 'Its responses stay, and what they answered with them. A response that is being made goes on.',
  params,
  responses: async () => (await answers()).deletedConversationResponses(),
  handle: async ({ params: { id }, exchange }, context) => {
    await ownStore(context, exchange.terms).conversations.delete(id);
    return Response.json({ id, object: 'conversation.deleted', deleted: true });
  },
});

export const conversationItemsRoute = defineRoute({
  method: 'get',
  path: '/v1/conversations/{id}/items',
  tags,
  summary: 'Lists the items of a conversation',
  params,
  query: z.strictObject({ ...listFields, ...include }),
  responses: itemLists,
  handle: async ({ params: { id }, query, exchange }, context) =>
    jsonAnswer(await conversationItemList(ownStore(context, exchange.terms), id, query)),
});

export const createItemsRoute = defineRoute({
  method: 'post',
  path: '/v1/conversations/{id}/items',
  tags,
  summary: 'Puts items at the end of a conversation',
  description: 'Not while a response of it is made.',
  params,
  query: z.strictObject(include),
  body: createItemsSchema,
  examples: { 'A message': { items: [{ type: 'message', role: 'user', content: 'Hello!' }] } },
  responses: itemLists,
  handle: async ({ params: { id }, body, exchange }, context) => {
    const store = ownStore(context, exchange.terms);
    const items = await storedItems(body.items, store);
    return jsonAnswer(itemListJson(await store.conversations.add(id, items), false));
  },
});

export const conversationItemRoute = defineRoute({
  method: 'get',
  path: '/v1/conversations/{id}/items/{item}',
  tags,
  summary: 'Shows an item of a conversation',
  params: itemParams,
  query: z.strictObject(include),
  responses: async () => (await answers()).conversationItemResponses(),
  handle: async ({ params: { id, item }, exchange }, context) => {
    const store = ownStore(context, exchange.terms);
    const found = await store.conversations.item(id, item);
    store.show([found]);
    return jsonAnswer(itemJson(found));
  },
});

export const deleteItemRoute = defineRoute({
  method: 'delete',
  path: '/v1/conversations/{id}/items/{item}',
  tags,
  summary: 'Removes an item from a conversation',
  params: itemParams,
  responses: async () => (await answers()).conversationResponses(),
  handle: async ({ params: { id, item }, exchange }, context) =>
    Response.json((await ownStore(context, exchange.terms).conversations.removeItem(id, item)).toJson()),
});
