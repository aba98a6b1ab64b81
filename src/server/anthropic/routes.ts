import { countTokens, createMessage } from './create-message.js';
import { countTokensSchema, messageRequestSchema } from './schemas/messages.js';
import { defineRoute } from './services.js';

const tags = ['Messages'] as const;
const answers = () => import('./answers.js');

const question = [{ role: 'user', content: 'What is the capital of France?' }];
const weather = {
  name: 'get_weather',
  description: 'The weather of a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

export const createMessageRoute = defineRoute({
  method: 'post',
  path: '/v1/messages',
  tags,
  summary: 'Answers a conversation',
  description:
    "Anthropic's Messages API. With `stream` the answer comes as server-sent events, from `message_start` to " +
    '`message_stop`, with a `ping` in a long silence. The headers `anthropic-version` and `anthropic-beta` are ' +
    'accepted, whatever they say.',
  body: messageRequestSchema,
  examples: {
    'A question': { max_tokens: 64, messages: question },
    'As a stream': { max_tokens: 64, system: 'Answer in one word.', messages: question, stream: true },
    'With a tool': {
      max_tokens: 64,
      messages: [{ role: 'user', content: 'Is it raining in Paris?' }],
      tools: [weather],
    },
  },
  responses: async () => (await answers()).messageResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => createMessage(context, body, exchange),
});

export const countTokensRoute = defineRoute({
  method: 'post',
  path: '/v1/messages/count_tokens',
  tags,
  summary: 'Counts the tokens of the prompt that a conversation makes',
  description: 'The prompt may be longer than the model takes.',
  body: countTokensSchema,
  examples: { 'A question': { messages: question } },
  responses: async () => (await answers()).countResponses(),
  loadsModel: true,
  handle: ({ body, exchange }, context) => countTokens(context, body, exchange),
});
