// Schemas of answers for the description of the API, imported when it is asked for.
import * as z from 'zod';
import { about, component } from '../../schemas/fields.js';
import type { Responses } from './route.js';

const errorSchema = component(
  'Error',
  z.object({
    error: z.object({
      message: about(z.string(), 'One sentence: what, where, what was expected and what was found.'),
      type: about(z.string(), {
        description: 'The kind of error.',
        examples: ['invalid_request_error', 'authentication_error', 'rate_limit_error', 'server_error'],
      }),
      param: about(z.string().nullable(), {
        description: 'The field at fault, where it is one.',
        examples: ['messages[0].content'],
      }),
      code: about(z.string().nullable(), {
        description: 'The error in a word for programs, where it has one.',
        examples: ['context_length_exceeded'],
      }),
    }),
  }),
  "An error as OpenAI's clients know it.",
);

const requestId = about(z.string(), 'The X-Request-Id of the request, or a new one where it had none.');
const retryAfter = about(z.string(), 'Seconds after which to come again.');

/** A named schema, or null; the name stays that of the schema alone. */
export const orNull = <T extends z.ZodType>(schema: T, text: string) =>
  about(z.union([schema, z.null()]), text);

/** Headers of every answer. */
const answerHeaders = z.object({ 'X-Request-Id': requestId });
const refusalHeaders = z.object({ 'X-Request-Id': requestId, 'Retry-After': retryAfter });

const ERRORS = {
  400: 'The request is at fault; `param` names the field.',
  401: 'The API key is missing or wrong.',
  403: 'The API key may not do this, the web page that asks is of an origin that may not use the server, or the Host is none of its names.',
  404: 'There is no such thing.',
  408: 'The body did not come in time.',
  413: 'The body is too long.',
  424: 'An MCP server of the request cannot list its tools.',
  429: 'The queue is full: come again after Retry-After seconds. No stream was begun.',
  500: 'The server or the engine failed.',
  503: 'The server is shutting down, or its engine does not run.',
} as const;

/** Error answers; documentation/open-api/ has those of every route. */
export function errors(...statuses: (keyof typeof ERRORS)[]): Responses {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: ERRORS[status],
        headers: status === 429 || status === 503 ? refusalHeaders : answerHeaders,
        content: { 'application/json': { schema: errorSchema } },
      },
    ]),
  );
}

export const jsonAnswer = (description: string, schema: z.ZodType): Responses[string] => ({
  description,
  headers: answerHeaders,
  content: { 'application/json': { schema } },
});

/** An answer that comes whole, or as server-sent events where the request asks for a stream. */
export const answerOrStream = (
  description: string,
  { whole, event, example }: { whole: z.ZodType; event: z.ZodType; example: string },
): Responses[string] => ({
  description,
  headers: answerHeaders,
  content: {
    'application/json': { schema: whole },
    // OpenAPI 3.1 cannot describe a sequence of events: the schema is that of each event's data.
    'text/event-stream': { schema: event, example },
  },
});

/** What a route answers that generates a text, whole or as a stream. */
export const generationResponses = (...answer: Parameters<typeof answerOrStream>): Responses => ({
  200: answerOrStream(...answer),
  ...errors(400, 401, 404, 413, 429, 500, 503),
});

const milliseconds = z.number();

export const timings = about(
  z
    .object({
      cache_n: about(z.int(), 'Tokens of the prompts that were found in the cache.'),
      prompt_n: about(z.int(), 'Tokens of the prompts that were computed.'),
      prompt_ms: about(milliseconds, 'From the request to the first token, waiting included.'),
      prompt_per_token_ms: milliseconds,
      prompt_per_second: z.number(),
      predicted_n: about(z.int(), 'Tokens of the answers.'),
      predicted_ms: about(milliseconds, 'From the first token to the last.'),
      predicted_per_token_ms: milliseconds,
      predicted_per_second: z.number(),
    })
    .optional(),
  'With `timings_per_token`.',
);

export const promptProgress = about(
  z
    .object({
      total: about(z.int(), 'Tokens of the prompt.'),
      cache: about(z.int(), 'Tokens of the prompt that were found in the cache.'),
      processed: about(z.int(), 'Tokens of the prompt that are done, those of the cache included.'),
      time_ms: about(z.int(), 'Milliseconds since the request first ran.'),
    })
    .optional(),
  'With `return_progress`, in chunks before the first token.',
);

export const usageSchema = component(
  'Usage',
  z.object({
    prompt_tokens: about(z.int(), 'Tokens of the prompts, the chat template included.'),
    completion_tokens: about(z.int(), 'Tokens generated, by all choices together.'),
    total_tokens: about(z.int(), 'Both together.'),
    prompt_tokens_details: z.object({
      cached_tokens: about(z.int(), 'Tokens of the prompts that were found in the cache.'),
      image_tokens: about(
        z.int().optional(),
        'Tokens of the prompts that are of pictures; only where there are any.',
      ),
    }),
    completion_tokens_details: about(
      z.object({ reasoning_tokens: z.int() }).optional(),
      'Of models that reason: how many of the tokens generated were reasoning.',
    ),
  }),
  'What a request took.',
);

export const finishReason = about(
  z.enum(['stop', 'length']),
  'stop: the model ended, or a stop text came; length: the limit of tokens or of time was reached.',
);

export const stopReason = about(
  z.union([z.string(), z.int()]).nullable(),
  "The stop text or stop token that ended the answer, or 'time_limit'.",
);

/** Fields of an answer around its choices. */
export const envelope = <Kind extends string>(object: Kind, idPrefix: string) => ({
  id: about(z.string(), {
    description: 'The same in all chunks of a stream.',
    examples: [`${idPrefix}-1f6d`],
  }),
  object: z.literal(object),
  created: about(z.int(), 'Seconds since 1970.'),
  model: about(z.string(), 'The model that answered.'),
  system_fingerprint: about(
    z.string(),
    'Fingerprint of the engine that answered: its weights, precisions, executor, instruction set and version. Several, joined by +, where several engines had a part.',
  ),
});

/** Fields of a choice besides its text. */
export const choiceFields = {
  token_ids: about(z.array(z.int()).optional(), 'With `return_token_ids`: the tokens generated.'),
  seed: about(
    z.int().optional(),
    'The seed of the answers to this prompt, drawn where none was given; in a stream with the last chunk of a choice.',
  ),
};

export const promptTokenIds = about(
  z.array(z.int()).optional(),
  'With `return_token_ids`: the tokens of the prompt; in a stream in the first chunk.',
);

export const promptLogProbs = about(
  z
    .array(
      z
        .record(
          z.string(),
          z.object({ logprob: z.number(), rank: z.int().nullable(), decoded_token: z.string() }),
        )
        .nullable(),
    )
    .optional(),
  'With `prompt_logprobs`: by token id, for each token of the prompt but the first. The rank of a token that is not among those asked for is not known.',
);
