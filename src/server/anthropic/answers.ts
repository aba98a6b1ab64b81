// Schemas of Anthropic's answers for the description of the API, imported when it is asked for.
import * as z from 'zod';
import { about, component } from '../../schemas/fields.js';
import { answerOrStream, errors, jsonAnswer } from '../web/described-answers.js';
import type { Responses } from '../web/route.js';

const errorSchema = component(
  'MessageError',
  z.object({
    type: z.literal('error'),
    error: z.object({
      type: about(z.string(), {
        description: 'The kind of error.',
        examples: ['invalid_request_error', 'authentication_error', 'not_found_error', 'overloaded_error'],
      }),
      message: about(z.string(), 'One sentence: what, where, what was expected and what was found.'),
      details: about(
        z
          .object({
            error_code: about(z.string().optional(), 'The error in a word for programs.'),
            param: about(z.string().optional(), 'The field at fault.'),
          })
          .optional(),
        'More for programs, where there is more.',
      ),
    }),
    request_id: about(z.string().optional(), 'The id of the request; not in a stream.'),
  }),
  "An error as Anthropic's clients know it.",
);

/** Error answers, in Anthropic's form. */
function messageErrors(...statuses: Parameters<typeof errors>): Responses {
  const content = { 'application/json': { schema: errorSchema } };
  return Object.fromEntries(
    Object.entries(errors(...statuses)).map(([status, answer]) => [status, { ...answer, content }]),
  ) as Responses;
}

const block = component(
  'ContentBlock',
  z.union([
    about(z.object({ type: z.literal('text'), text: z.string() }), 'What the model says.'),
    about(
      z.object({
        type: z.literal('thinking'),
        thinking: z.string(),
        signature: about(z.string(), 'A digest of what the model thought.'),
      }),
      'What the model thinks, where it is one that reasons.',
    ),
    about(
      z.object({
        type: z.literal('tool_use'),
        id: about(z.string(), 'What the result of the call has to name.'),
        name: z.string(),
        input: about(z.record(z.string(), z.unknown()), 'The arguments.'),
        caller: z.object({ type: z.literal('direct') }),
      }),
      'A call of a tool.',
    ),
  ]),
  'A block of an answer.',
);

const stop = {
  stop_reason: about(
    z
      .enum(['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'model_context_window_exceeded'])
      .nullable(),
    'Why the answer ended; max_tokens also where a limit of time was reached, or the request was cancelled.',
  ),
  stop_sequence: about(z.string().nullable(), 'The stop sequence that ended the answer.'),
  stop_details: about(z.null(), 'Always null.'),
  container: about(z.null(), 'Always null.'),
};

const usageFields = {
  input_tokens: about(z.int(), 'Tokens of the prompt that were computed.'),
  cache_creation_input_tokens: about(z.literal(0), 'Nothing is charged for what stays in the cache.'),
  cache_read_input_tokens: about(z.int(), 'Tokens of the prompt that were found in the cache.'),
  output_tokens: about(z.int(), 'Tokens generated.'),
  output_tokens_details: z.object({ thinking_tokens: about(z.int(), 'Those that were thinking.') }),
  server_tool_use: about(z.null(), 'Always null.'),
};

const messageSchema = component(
  'MessageAnswer',
  z.object({
    id: about(z.string(), { description: 'Its name, by which it can be cancelled.', examples: ['msg_5f1c'] }),
    type: z.literal('message'),
    role: z.literal('assistant'),
    model: about(z.string(), 'The model that answered.'),
    content: z.array(block),
    ...stop,
    usage: z.object({
      ...usageFields,
      cache_creation: about(z.null(), 'Always null.'),
      service_tier: z.literal('standard'),
      inference_geo: about(z.null(), 'Always null.'),
    }),
  }),
  'An answer.',
);

const index = { index: about(z.int(), 'The place of the block.') };
const delta = z.union([
  z.object({ type: z.literal('text_delta'), text: z.string() }),
  z.object({ type: z.literal('thinking_delta'), thinking: z.string() }),
  z.object({ type: z.literal('signature_delta'), signature: z.string() }),
  z.object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
]);

const streamEvent = component(
  'MessageStreamEvent',
  z.union([
    about(z.object({ type: z.literal('message_start'), message: messageSchema }), 'The first event.'),
    about(z.object({ type: z.literal('ping') }), 'Nothing; it keeps the connection open.'),
    about(
      z.object({ type: z.literal('content_block_start'), ...index, content_block: block }),
      'A block begins.',
    ),
    about(z.object({ type: z.literal('content_block_delta'), ...index, delta }), 'More of the block.'),
    about(z.object({ type: z.literal('content_block_stop'), ...index }), 'The block has ended.'),
    about(
      z.object({ type: z.literal('message_delta'), delta: z.object(stop), usage: z.object(usageFields) }),
      'The answer has ended.',
    ),
    about(z.object({ type: z.literal('message_stop') }), 'The last event.'),
    errorSchema,
  ]),
  'The data of one event of a stream; the name of the event is its type.',
);

const EXAMPLE = [
  'event: content_block_delta',
  'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paris"}}',
].join('\n');

export function messageResponses(): Responses {
  return {
    200: answerOrStream('The answer, or a stream of events.', {
      whole: messageSchema,
      event: streamEvent,
      example: EXAMPLE,
    }),
    ...messageErrors(400, 401, 403, 404, 408, 413, 429, 500, 503),
  };
}

export function countResponses(): Responses {
  const count = z.object({
    input_tokens: about(z.int(), 'Tokens of the prompt, the chat template included.'),
  });
  return {
    200: jsonAnswer('The count.', count),
    ...messageErrors(400, 401, 403, 404, 408, 413, 429, 500, 503),
  };
}

/** A model in Anthropic's form. */
export const modelInfoSchema = component(
  'ModelInfo',
  z.object({
    type: z.literal('model'),
    id: about(z.string(), "The name to give as 'model'."),
    display_name: z.string(),
    created_at: about(
      z.string(),
      'When the server began to serve it, or its files were stored, in RFC 3339.',
    ),
    max_input_tokens: about(
      z.int().nullable(),
      'Tokens of the context, prompt and answer together; null where the model is not loaded.',
    ),
    max_tokens: about(z.int().nullable(), 'The same.'),
    capabilities: about(z.null(), 'Always null.'),
    line: about(z.null(), 'Always null.'),
    lifecycle: z.literal('active'),
    deprecated_at: about(z.null(), 'Always null.'),
    retires_at: about(z.null(), 'Always null.'),
  }),
  "A model that is served, as Anthropic's clients know it.",
);

export const modelPageSchema = z.object({
  data: z.array(modelInfoSchema),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: about(z.literal(false), 'All models are on one page.'),
});
