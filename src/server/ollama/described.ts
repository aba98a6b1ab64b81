// Answers of Ollama's routes for the description of the API, imported when it is asked for.
import * as z from 'zod';
import { about, component } from '../../schemas/fields.js';
import { jsonAnswer } from '../web/described-answers.js';
import type { Responses } from '../web/route.js';

const errorSchema = component(
  'OllamaError',
  z.object({ error: about(z.string(), 'One sentence: what, where, what was expected and what was found.') }),
  "An error as Ollama's clients know it.",
);

const STATUSES = {
  400: 'The request is at fault.',
  401: 'The API key is missing or wrong.',
  403: 'The API key may not do this.',
  404: 'There is no such model.',
  429: 'The queue is full: come again after Retry-After seconds.',
  500: 'The server, the engine or the load of the model failed.',
  503: 'The server is shutting down, or has no room for the model now.',
} as const;

type Status = keyof typeof STATUSES;

/** Error answers in the form of this API. */
function ollamaErrors(...statuses: Status[]): Responses {
  return Object.fromEntries(statuses.map((status) => [status, jsonAnswer(STATUSES[status], errorSchema)]));
}

const durations = {
  total_duration: about(z.int().optional(), 'Nanoseconds from the request to the end of its answer.'),
  load_duration: about(z.int().optional(), 'Those until the model was there.'),
  prompt_eval_count: about(z.int().optional(), 'Tokens of the prompt.'),
  prompt_eval_duration: about(z.int().optional(), 'Nanoseconds from there to the first token.'),
  eval_count: about(z.int().optional(), 'Tokens of the answer.'),
  eval_duration: about(z.int().optional(), 'Nanoseconds from its first token to its last.'),
};

const token = { token: z.string(), logprob: z.number(), bytes: z.array(z.int()) };

const common = {
  model: about(z.string(), 'The name as it was asked for.'),
  created_at: about(z.string(), 'When this part was made.'),
  done: about(z.boolean(), 'This is the end of the answer.'),
  done_reason: about(
    z.enum(['stop', 'length', 'load', 'unload']).optional(),
    'stop: the model ended, or a stop text came; length: a limit was reached; load, unload: nothing was asked.',
  ),
  logprobs: about(
    z.array(z.object({ ...token, top_logprobs: z.array(z.object(token)) })).optional(),
    'Log-probabilities of tokens, with `logprobs`.',
  ),
  ...durations,
};

const thinking = about(z.string().optional(), 'What the model thought.');

const chatPart = component(
  'OllamaChatAnswer',
  z.object({
    ...common,
    message: z.object({
      role: z.literal('assistant'),
      content: z.string(),
      thinking,
      tool_calls: z
        .array(
          z.object({
            id: z.string(),
            function: z.object({ index: z.int(), name: z.string(), arguments: z.looseObject({}) }),
          }),
        )
        .optional(),
    }),
  }),
  'An answer of a chat, or a part of it.',
);

const generatePart = component(
  'OllamaGenerateAnswer',
  z.object({
    ...common,
    response: about(z.string(), 'The text.'),
    thinking,
    context: about(z.array(z.int()).optional(), 'With the end: the tokens of prompt and answer.'),
  }),
  'An answer to a prompt, or a part of it.',
);

/** An answer that comes whole, or as lines of JSON. */
const linesOr = (description: string, schema: z.ZodType): Responses[string] => ({
  description,
  content: { 'application/json': { schema }, 'application/x-ndjson': { schema } },
});

const ALL = [400, 401, 404, 429, 500, 503] as const;

export const chatAnswers = (): Responses => ({
  200: linesOr('Lines of JSON, the last of them with the durations; or all in one object.', chatPart),
  ...ollamaErrors(...ALL),
});

export const generateAnswers = (): Responses => ({
  200: linesOr('Lines of JSON, the last of them with the durations; or all in one object.', generatePart),
  ...ollamaErrors(...ALL),
});

export const embedAnswers = (): Responses => ({
  200: jsonAnswer(
    'The embeddings, each of length 1.',
    z.object({ model: z.string(), embeddings: z.array(z.array(z.number())), ...durations }),
  ),
  ...ollamaErrors(...ALL),
});

export const embeddingsAnswers = (): Responses => ({
  200: jsonAnswer('The embedding.', z.object({ embedding: z.array(z.number()) })),
  ...ollamaErrors(...ALL),
});

const details = z.object({
  parent_model: z.string(),
  format: z.string(),
  family: z.string(),
  families: z.array(z.string()).nullable(),
  parameter_size: z.string(),
  quantization_level: z.string(),
});

const listed = {
  name: about(z.string(), 'The name, with its tag.'),
  model: about(z.string(), 'The same.'),
  size: about(z.int(), 'Bytes.'),
  digest: about(z.string(), 'Changes with the files.'),
  details,
};

export const tagsAnswers = (): Responses => ({
  200: jsonAnswer(
    'The models.',
    z.object({ models: z.array(z.object({ ...listed, modified_at: z.string() })) }),
  ),
  ...ollamaErrors(401),
});

export const psAnswers = (): Responses => ({
  200: jsonAnswer(
    'The loaded models.',
    z.object({
      models: z.array(
        z.object({
          ...listed,
          expires_at: about(z.string(), 'When it is unloaded, if no client asks it again.'),
          size_vram: about(z.int(), 'Bytes of these in the memory of a GPU.'),
          context_length: z.int(),
        }),
      ),
    }),
  ),
  ...ollamaErrors(401),
});

export const showAnswers = (): Responses => ({
  200: jsonAnswer(
    'The model.',
    z.object({
      modelfile: z.string(),
      parameters: z.string(),
      template: about(z.string(), 'The chat template, in Jinja.'),
      details,
      model_info: about(z.looseObject({}), 'Dimensions, by the names that GGUF has for them.'),
      capabilities: z.array(z.string()),
      modified_at: z.string(),
    }),
  ),
  ...ollamaErrors(400, 401, 404),
});

export const versionAnswers = (): Responses => ({
  200: jsonAnswer(
    'The versions.',
    z.object({
      version: about(z.string(), "The version of Ollama's API that is spoken here."),
      skein: about(z.string(), 'The version of the server.'),
    }),
  ),
  ...ollamaErrors(401),
});

export const pullAnswers = (): Responses => ({
  200: linesOr(
    'Lines of JSON, the last of them with the status success; or that alone.',
    z.object({
      status: about(z.string(), 'What is being done.'),
      digest: about(z.string().optional(), 'The file that is being downloaded.'),
      total: about(z.int().optional(), 'Its bytes.'),
      completed: about(z.int().optional(), 'Those that are here.'),
    }),
  ),
  ...ollamaErrors(400, 401, 403, 429, 500, 503),
});

export const deleteAnswers = (): Responses => ({
  200: { description: 'It is deleted.' },
  ...ollamaErrors(400, 401, 403, 404),
});
