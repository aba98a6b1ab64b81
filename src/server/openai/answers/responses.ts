import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import {
  answerOrStream,
  errors,
  generationResponses,
  jsonAnswer,
  orNull,
} from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const itemStatus = about(z.enum(['in_progress', 'completed', 'incomplete']), 'incomplete: a limit cut it.');

const token = {
  token: about(z.string(), 'The text of the token; where it is no whole character, its bytes as \\xNN.'),
  logprob: about(z.number(), 'Its natural log-probability, -9999 at least.'),
  bytes: about(z.array(z.int()), 'Its bytes, 0 to 255.'),
};
const logProbs = () => z.array(z.object({ ...token, top_logprobs: z.array(z.object(token)) }));

const outputText = component(
  'ResponseOutputText',
  z.object({
    type: z.literal('output_text'),
    text: z.string(),
    annotations: about(z.array(z.unknown()).max(0), 'Always empty.'),
    logprobs: about(logProbs().optional(), 'Where `include` asks for them.'),
  }),
  'Text of a message.',
);

const reasoningText = z.object({ type: z.literal('reasoning_text'), text: z.string() });

const compaction = component(
  'ResponseCompactionItem',
  z.object({
    type: z.literal('compaction'),
    id: z.string(),
    encrypted_content: about(z.string(), 'The summary, to be sent back with the item.'),
  }),
  'What stands for the conversation before it.',
);

const outputItem = component(
  'ResponseOutputItem',
  z.union([
    about(
      z.object({
        type: z.literal('message'),
        id: z.string(),
        status: itemStatus,
        role: z.literal('assistant'),
        content: z.array(outputText),
      }),
      'What the model says.',
    ),
    about(
      z.object({
        type: z.literal('reasoning'),
        id: z.string(),
        status: itemStatus,
        summary: about(z.array(z.unknown()).max(0), 'Always empty.'),
        content: z.array(reasoningText),
        encrypted_content: about(
          z.string().optional(),
          'Where `include` asks for it: the reasoning, to be sent back.',
        ),
      }),
      'What the model thinks, where it is one that reasons.',
    ),
    about(
      z.object({
        type: z.literal('function_call'),
        id: z.string(),
        status: itemStatus,
        call_id: about(z.string(), 'What the output of the call has to name.'),
        name: z.string(),
        namespace: about(z.string().optional(), 'Where the tool is in one.'),
        arguments: about(z.string(), 'JSON.'),
      }),
      'A call of a function.',
    ),
    about(
      z.object({
        type: z.literal('custom_tool_call'),
        id: z.string(),
        status: itemStatus,
        call_id: about(z.string(), 'What the output of the call has to name.'),
        name: z.string(),
        namespace: about(z.string().optional(), 'Where the tool is in one.'),
        input: z.string(),
      }),
      'A call of a custom tool.',
    ),
    about(
      z.object({
        type: z.literal('tool_search_call'),
        id: z.string(),
        status: itemStatus,
        call_id: about(z.string(), 'What the output of the search has to name.'),
        execution: z.literal('client'),
        arguments: about(z.record(z.string(), z.unknown()), 'What is searched for.'),
      }),
      'A search for tools, which the client makes.',
    ),
    about(
      z.object({
        type: z.literal('mcp_list_tools'),
        id: z.string(),
        server_label: z.string(),
        tools: z.array(
          z.object({
            name: z.string(),
            description: z.string().nullable(),
            input_schema: about(z.record(z.string(), z.unknown()), 'JSON schema of its arguments.'),
            annotations: about(
              z.record(z.string(), z.unknown()).nullable(),
              'What the server says of it besides.',
            ),
          }),
        ),
        error: about(z.string().nullable(), 'Why there are none.'),
      }),
      'The tools of an MCP server.',
    ),
    about(
      z.object({
        type: z.literal('mcp_call'),
        id: z.string(),
        status: about(
          z.enum(['in_progress', 'calling', 'completed', 'incomplete', 'failed']),
          'incomplete: it was ended with its response.',
        ),
        approval_request_id: about(z.string().nullable(), 'The item that asked for the approval.'),
        server_label: z.string(),
        name: z.string(),
        arguments: about(z.string(), 'JSON.'),
        output: about(z.string().nullable(), 'What the call gave.'),
        error: about(z.string().nullable(), 'What went wrong.'),
      }),
      'A call of a tool of an MCP server, which ran here.',
    ),
    about(
      z.object({
        type: z.literal('mcp_approval_request'),
        id: about(z.string(), 'What the approval has to name.'),
        server_label: z.string(),
        name: z.string(),
        arguments: about(z.string(), 'JSON.'),
      }),
      'A call that waits for approval.',
    ),
    compaction,
  ]),
  'An item of the output.',
);

const usage = z.object({
  input_tokens: about(z.int(), 'Tokens of the prompt, the chat template included.'),
  input_tokens_details: z.object({
    cached_tokens: about(z.int(), 'Those that were found in the cache.'),
    cache_write_tokens: about(z.literal(0), 'Nothing is charged for what stays in the cache.'),
    image_tokens: about(z.int().optional(), 'Those that are of pictures; only where there are any.'),
  }),
  output_tokens: about(z.int(), 'Tokens generated.'),
  output_tokens_details: z.object({ reasoning_tokens: about(z.int(), 'Those that were reasoning.') }),
  total_tokens: about(z.int(), 'Both together.'),
});

const response = component(
  'Response',
  z.looseObject({
    id: about(z.string(), { description: 'Its name for later requests.', examples: ['resp_5f1c'] }),
    object: z.literal('response'),
    created_at: about(z.int(), 'Seconds since 1970.'),
    completed_at: about(z.int().nullable(), 'Seconds since 1970.'),
    model: about(z.string(), 'The model that answered.'),
    status: z.enum(['in_progress', 'completed', 'incomplete', 'failed', 'cancelled']),
    incomplete_details: about(
      z
        .object({
          reason: z.literal('max_output_tokens'),
          stop_reason: about(z.literal('time_limit').optional(), 'Where it was the limit of time.'),
        })
        .nullable(),
      'The limit that cut it.',
    ),
    error: about(
      z
        .object({
          code: z.enum(['server_error', 'rate_limit_exceeded', 'invalid_prompt']),
          message: z.string(),
        })
        .nullable(),
      'Why it failed.',
    ),
    output: z.array(outputItem),
    usage: orNull(usage, 'Once it has ended.'),
    previous_response_id: z.string().nullable(),
    metadata: z.record(z.string(), z.string()),
  }),
  'A response. The fields of its request are in it too, with their defaults.',
);

const event = <Type extends string, Fields extends z.ZodRawShape>(type: Type, fields: Fields, text: string) =>
  about(
    z.object({
      type: z.literal(type),
      sequence_number: about(z.int(), '0, 1, 2, ... in the order of the stream.'),
      ...fields,
    }),
    text,
  );

const item = { output_index: z.int(), item: outputItem };
const place = { item_id: z.string(), output_index: z.int() };
const partPlace = { ...place, content_index: z.int() };
const part = z.union([outputText, reasoningText]);

const failure = { code: z.string(), message: z.string(), param: z.string().nullable() };

const streamEvent = component(
  'ResponseStreamEvent',
  z.union([
    event('response.created', { response }, 'The first event.'),
    event('response.in_progress', { response }, 'The second event.'),
    event('response.output_item.added', item, 'An item begins.'),
    event('response.content_part.added', { ...partPlace, part }, 'Its text begins.'),
    event(
      'response.output_text.delta',
      { ...partPlace, delta: z.string(), logprobs: logProbs() },
      'More text.',
    ),
    event(
      'response.output_text.done',
      { ...partPlace, text: z.string(), logprobs: logProbs() },
      'The whole text.',
    ),
    event('response.reasoning_text.delta', { ...partPlace, delta: z.string() }, 'More reasoning.'),
    event('response.reasoning_text.done', { ...partPlace, text: z.string() }, 'The whole reasoning.'),
    event('response.content_part.done', { ...partPlace, part }, 'Its text has ended.'),
    event(
      'response.function_call_arguments.delta',
      { ...place, delta: z.string() },
      'More of the arguments.',
    ),
    event(
      'response.function_call_arguments.done',
      { ...place, name: z.string(), arguments: z.string() },
      'The whole arguments.',
    ),
    event(
      'response.custom_tool_call_input.delta',
      { ...place, delta: z.string() },
      'More of the input of a custom tool.',
    ),
    event('response.custom_tool_call_input.done', { ...place, input: z.string() }, 'The whole input.'),
    event('response.mcp_list_tools.in_progress', place, 'An MCP server is asked for its tools.'),
    event('response.mcp_list_tools.completed', place, 'It has answered.'),
    event('response.mcp_list_tools.failed', place, 'It cannot list its tools; the response fails.'),
    event('response.mcp_call.in_progress', place, 'A call of a tool of an MCP server begins.'),
    event('response.mcp_call_arguments.delta', { ...place, delta: z.string() }, 'More of its arguments.'),
    event('response.mcp_call_arguments.done', { ...place, arguments: z.string() }, 'The whole arguments.'),
    event('response.mcp_call.completed', place, 'The call has ended well.'),
    event('response.mcp_call.failed', place, 'The call has failed; the model reads why.'),
    event('response.output_item.done', item, 'The item has ended.'),
    event('response.completed', { response }, 'The last event.'),
    event(
      'response.incomplete',
      { response },
      'The last event, where a limit or a cancellation cut the response.',
    ),
    event(
      'error',
      { ...failure, error: about(z.object({ type: z.string(), ...failure }), 'The same once more.') },
      'The engine failed.',
    ),
    event('response.failed', { response }, 'The last event, after an error.'),
  ]),
  'The data of one event of a stream; the name of the event is its type.',
);

const EXAMPLE = [
  'event: response.output_text.delta',
  'data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Paris","logprobs":[]}',
].join('\n');

export const keptItem = component(
  'ResponseItem',
  z.looseObject({ type: z.string(), id: z.string() }),
  'An item as requests have it, with its id.',
);

const stored = (description: string): Responses => ({
  200: jsonAnswer(description, response),
  ...errors(400, 401, 404),
});

export function createResponses(): Responses {
  return {
    ...generationResponses('The response, or a stream of events.', {
      whole: response,
      event: streamEvent,
      example: EXAMPLE,
    }),
    ...errors(424),
  };
}

export function inputTokensResponses(): Responses {
  const count = z.object({
    object: z.literal('response.input_tokens'),
    input_tokens: about(z.int(), 'Tokens of the prompt, the chat template included.'),
  });
  return { 200: jsonAnswer('The count.', count), ...errors(400, 401, 404, 413, 429, 500, 503) };
}

export function compactResponses(): Responses {
  const compacted = component(
    'CompactedResponse',
    z.object({
      id: z.string(),
      object: z.literal('response.compaction'),
      created_at: about(z.int(), 'Seconds since 1970.'),
      output: about(z.array(keptItem), 'Messages that stay, and an item of type compaction after them.'),
      usage: about(usage, 'Of the summary.'),
    }),
    'Items that stand for a conversation.',
  );
  return {
    200: jsonAnswer('The items.', compacted),
    ...errors(400, 401, 404, 408, 413, 429, 500, 503),
  };
}

export const storedResponses = (): Responses => ({
  ...stored('The response.'),
  200: answerOrStream('The response, or its events.', {
    whole: response,
    event: streamEvent,
    example: EXAMPLE,
  }),
});
export const cancelledResponses = () => ({ ...stored('The response as far as it came.'), ...errors(503) });

export function deletedResponses(): Responses {
  const deleted = z.object({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) });
  return { 200: jsonAnswer('It is forgotten.', deleted), ...errors(401, 404) };
}

export function itemListResponses(): Responses {
  const list = z.object({
    object: z.literal('list'),
    data: about(z.array(keptItem), 'Items, as requests have them.'),
    first_id: about(z.string().nullable(), 'The first of the page.'),
    last_id: about(z.string().nullable(), 'The last of the page.'),
    has_more: about(z.boolean(), 'There are more after it.'),
  });
  return { 200: jsonAnswer('A page of items.', list), ...errors(400, 401, 404) };
}
