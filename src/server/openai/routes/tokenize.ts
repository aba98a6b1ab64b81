import { chatRequestSchema } from '../schemas/chat.js';
import { completionRequestSchema } from '../schemas/completions.js';
import { detokenizeRequestSchema, tokenizeRequestSchema } from '../schemas/tokenize.js';
import { defineRoute } from '../services.js';
import { applyTemplate, detokenize, renderConversation, renderPrompt, tokenize } from '../tokenize.js';

export const tokenizeRoute = defineRoute({
  method: 'post',
  path: '/tokenize',
  tags: ['Models'],
  summary: 'Returns the tokens of a text or a conversation',
  body: tokenizeRequestSchema,
  examples: {
    'A text': { prompt: 'Once upon a time', return_token_strs: true },
    'A conversation': { messages: [{ role: 'user', content: 'Hello' }] },
  },
  responses: async () => (await import('../answers/server.js')).tokenizeResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => tokenize(context, body, exchange),
});

export const applyTemplateRoute = defineRoute({
  method: 'post',
  path: '/apply-template',
  tags: ['Models'],
  summary: 'Shows the prompt that the chat template makes of a conversation',
  body: chatRequestSchema,
  examples: { 'A conversation': { messages: [{ role: 'user', content: 'Hello' }] } },
  responses: async () => (await import('../answers/server.js')).applyTemplateResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => applyTemplate(context, body, exchange),
});

export const detokenizeRoute = defineRoute({
  method: 'post',
  path: '/detokenize',
  tags: ['Models'],
  summary: 'Returns the text of tokens',
  body: detokenizeRequestSchema,
  examples: { Tokens: { tokens: [71, 111, 111] } },
  responses: async () => (await import('../answers/server.js')).detokenizeResponses(),
  loadsModel: true,
  handle: ({ body }, context) => detokenize(context, body),
});

export const renderPromptRoute = defineRoute({
  method: 'post',
  path: '/v1/completions/render',
  tags: ['Models'],
  summary: 'Returns the tokens that a completion would begin with',
  body: completionRequestSchema,
  examples: { 'A text': { prompt: 'Once upon a time' } },
  responses: async () => (await import('../answers/server.js')).renderPromptResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => renderPrompt(context, body, exchange),
});

export const renderConversationRoute = defineRoute({
  method: 'post',
  path: '/v1/chat/completions/render',
  tags: ['Models'],
  summary: 'Returns the tokens that a chat completion would begin with',
  body: chatRequestSchema,
  examples: { 'A conversation': { messages: [{ role: 'user', content: 'Hello' }] } },
  responses: async () => (await import('../answers/server.js')).renderConversationResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => renderConversation(context, body, exchange),
});
