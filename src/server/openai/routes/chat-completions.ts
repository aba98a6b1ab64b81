import { chatCompletions } from '../chat-completions.js';
import { chatRequestSchema } from '../schemas/chat.js';
import { defineRoute } from '../services.js';

const messages = [
  { role: 'system', content: 'Answer in one sentence.' },
  { role: 'user', content: 'What is the capital of France?' },
];

export const chatCompletionsRoute = defineRoute({
  method: 'post',
  path: '/v1/chat/completions',
  tags: ['Generation'],
  summary: 'Answers a conversation',
  description:
    "The messages become a prompt through the model's chat template. With `stream` the answer comes as server-sent " +
    'events: chunks, and `[DONE]` at the end. A client that leaves ends its request.',
  body: chatRequestSchema,
  examples: {
    'A question': { messages, max_completion_tokens: 64 },
    'As a stream': { messages, stream: true, stream_options: { include_usage: true } },
    'JSON of a form': {
      messages,
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'city',
          schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    },
  },
  responses: async () => (await import('../answers/chat.js')).chatResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => chatCompletions(context, body, exchange),
});
