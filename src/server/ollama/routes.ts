import type { Route } from '../web/route.js';
import {
  chatSchema,
  deleteSchema,
  embeddingsSchema,
  embedSchema,
  generateSchema,
  pullSchema,
  showSchema,
} from './schemas.js';
import { defineRoute, type OllamaServices } from './services.js';

// A start without a client of Ollama imports none of this.
const described = () => import('./described.js');
const embedding = () => import('./embed.js');
const lists = () => import('./lists.js');
const pulling = () => import('./pull.js');

const chatRoute = defineRoute({
  method: 'post',
  path: '/api/chat',
  tags: ['Ollama'],
  summary: 'Answers a conversation',
  body: chatSchema,
  examples: {
    'A question': { model: 'm', messages: [{ role: 'user', content: 'What is the capital of France?' }] },
  },
  responses: async () => (await described()).chatAnswers(),
  handle: async ({ body, exchange }, context) => {
    const { chat } = await import('./chat.js');
    return chat(context, body, exchange);
  },
});

const generateRoute = defineRoute({
  method: 'post',
  path: '/api/generate',
  tags: ['Ollama'],
  summary: 'Answers a prompt',
  body: generateSchema,
  examples: { 'A prompt': { model: 'm', prompt: 'What is the capital of France?', stream: false } },
  responses: async () => (await described()).generateAnswers(),
  handle: async ({ body, exchange }, context) => {
    const { generate } = await import('./generate.js');
    return generate(context, body, exchange);
  },
});

const embedRoute = defineRoute({
  method: 'post',
  path: '/api/embed',
  tags: ['Ollama'],
  summary: 'Embeds texts',
  body: embedSchema,
  examples: { Texts: { model: 'm', input: ['The cat sits outside.', 'A man plays the guitar.'] } },
  responses: async () => (await described()).embedAnswers(),
  handle: async ({ body, exchange }, context) => (await embedding()).embed(context, body, exchange),
});

const embeddingsRoute = defineRoute({
  method: 'post',
  path: '/api/embeddings',
  tags: ['Ollama'],
  summary: 'Embeds a text: the older form of /api/embed',
  body: embeddingsSchema,
  examples: { 'A text': { model: 'm', prompt: 'The cat sits outside.' } },
  responses: async () => (await described()).embeddingsAnswers(),
  handle: async ({ body, exchange }, context) => (await embedding()).embeddings(context, body, exchange),
});

const tagsRoute = defineRoute({
  method: 'get',
  path: '/api/tags',
  tags: ['Ollama'],
  summary: 'Lists the models',
  responses: async () => (await described()).tagsAnswers(),
  handle: async (_, context) => (await lists()).tags(context),
});

const psRoute = defineRoute({
  method: 'get',
  path: '/api/ps',
  tags: ['Ollama'],
  summary: 'Lists the models that are loaded',
  responses: async () => (await described()).psAnswers(),
  handle: async (_, context) => (await lists()).ps(context),
});

const showRoute = defineRoute({
  method: 'post',
  path: '/api/show',
  tags: ['Ollama'],
  summary: 'Shows one model',
  body: showSchema,
  examples: { 'A model': { model: 'm' } },
  responses: async () => (await described()).showAnswers(),
  handle: async ({ body }, context) => (await lists()).show(context, body),
});

const RIGHTS =
  'Only where the server was started with --models-dir: with an API key of an admin, or, where there are no keys, from the machine of the server.';

const pullRoute = defineRoute({
  method: 'post',
  path: '/api/pull',
  tags: ['Ollama'],
  summary: 'Downloads a model of the Hugging Face hub',
  description: `${RIGHTS} A download that was broken off goes on where it was.`,
  body: pullSchema,
  examples: { 'A model': { model: 'hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q8_0' } },
  responses: async () => (await described()).pullAnswers(),
  handle: async ({ body, exchange, isLocal }, context) =>
    (await pulling()).pull(context, body, { exchange, isLocal }),
});

const deleteRoute = defineRoute({
  method: 'delete',
  path: '/api/delete',
  tags: ['Ollama'],
  summary: "Deletes a model's files",
  description: RIGHTS,
  body: deleteSchema,
  examples: { 'A model': { model: 'm' } },
  responses: async () => (await described()).deleteAnswers(),
  handle: async ({ body, exchange, isLocal }, context) =>
    (await pulling()).deleteModel(context, body, { exchange, isLocal }),
});

const versionRoute = defineRoute({
  method: 'get',
  path: '/api/version',
  tags: ['Ollama'],
  summary: 'Reports the version of the API',
  responses: async () => (await described()).versionAnswers(),
  handle: async (_, { version: skein }) => Response.json({ version: (await lists()).OLLAMA_VERSION, skein }),
});

/** Ollama's API, whose errors have a form of their own. */
export const OLLAMA_ROUTES: readonly Route<OllamaServices>[] = [
  chatRoute,
  generateRoute,
  embedRoute,
  embeddingsRoute,
  tagsRoute,
  psRoute,
  showRoute,
  pullRoute,
  deleteRoute,
  versionRoute,
];
