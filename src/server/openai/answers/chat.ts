import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import {
  choiceFields,
  envelope,
  errors,
  generationResponses,
  orNull,
  promptLogProbs,
  promptProgress,
  promptTokenIds,
  stopReason,
  timings,
  usageSchema,
} from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const tokenFields = {
  token: about(z.string(), 'The text of the token; where it is no whole character, its bytes as \\xNN.'),
  logprob: about(z.number(), 'Its natural log-probability, -9999 at least.'),
  bytes: about(z.array(z.int()), 'Its bytes, 0 to 255.'),
};

const chatLogProbs = component(
  'ChatLogProbs',
  z.object({
    content: z.array(z.object({ ...tokenFields, top_logprobs: z.array(z.object(tokenFields)) })),
    refusal: z.null(),
  }),
  'Log-probabilities of the tokens of an answer.',
);

const logProbs = orNull(chatLogProbs, 'With `logprobs` only.');

const reasoningFields = {
  reasoning: about(z.string().optional(), 'What the model thought before it answered.'),
  reasoning_content: about(z.string().optional(), 'The same under the older name.'),
};

const functionCall = z.object({
  name: z.string(),
  arguments: about(z.string(), 'JSON, as the model wrote it.'),
});

const call = component(
  'ToolCall',
  z.object({
    id: z.string(),
    type: z.literal('function'),
    function: functionCall,
  }),
  'A call of a function.',
);

const servedCall = {
  id: z.string(),
  server_label: z.string(),
  name: z.string(),
  arguments: about(z.string(), 'JSON, as the model wrote it.'),
  output: about(z.string().nullable(), 'What the call gave.'),
  error: about(z.string().nullable(), 'What went wrong.'),
};

const functionDelta = z.object({ name: z.string().optional(), arguments: z.string() });

const callDelta = z.object({
  index: z.int(),
  id: z.string().optional(),
  type: z.literal('function').optional(),
  function: functionDelta,
});

const chatFinishReason = about(
  z.enum(['stop', 'length', 'tool_calls', 'function_call']),
  'stop: the model ended, or a stop text came; tool_calls, or function_call with `functions`: it ended and has called functions, none of them by your choice of its name; length: the limit of tokens or of time was reached.',
);

const chatCompletion = component(
  'ChatCompletion',
  z.object({
    ...envelope('chat.completion', 'chatcmpl'),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.object({
          role: z.literal('assistant'),
          content: about(z.string().nullable(), 'null where there are calls and no text.'),
          refusal: z.null(),
          ...reasoningFields,
          tool_calls: about(z.array(call).optional(), 'Calls of the functions that were given as tools.'),
          function_call: about(functionCall.optional(), 'The call of one of `functions`.'),
          mcp_calls: about(
            z.array(z.object(servedCall)).optional(),
            'Calls of tools of MCP servers, which ran here.',
          ),
        }),
        logprobs: logProbs,
        finish_reason: chatFinishReason,
        stop_reason: stopReason,
        ...choiceFields,
      }),
    ),
    usage: usageSchema,
    timings,
    prompt_logprobs: promptLogProbs,
    prompt_token_ids: promptTokenIds,
  }),
  'An answer that is whole.',
);

const chatChunk = component(
  'ChatCompletionChunk',
  z.object({
    ...envelope('chat.completion.chunk', 'chatcmpl'),
    choices: about(
      z.array(
        z.object({
          index: z.int(),
          delta: z.object({
            role: about(z.literal('assistant').optional(), 'In the first chunk of a choice.'),
            content: orNull(z.string(), 'More text.').optional(),
            ...reasoningFields,
            tool_calls: about(
              z.array(callDelta).optional(),
              'A call, or more of its arguments; id, type and name come once.',
            ),
            function_call: about(functionDelta.optional(), 'The same with `functions`.'),
            mcp_calls: about(
              z.array(z.object({ index: z.int(), ...servedCall })).optional(),
              'A call of a tool of an MCP server, once it has ended.',
            ),
          }),
          logprobs: logProbs,
          finish_reason: about(chatFinishReason.nullable(), 'In the last chunk of a choice.'),
          stop_reason: stopReason.optional(),
          ...choiceFields,
        }),
      ),
      'Empty in the chunk of the usage.',
    ),
    usage: orNull(usageSchema, 'With `stream_options`.').optional(),
    timings,
    prompt_progress: promptProgress,
    prompt_token_ids: promptTokenIds,
  }),
  'The data of one event of a stream.',
);

const EXAMPLE = [
  'data: {"id":"chatcmpl-1f6d","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"Paris"},"logprobs":null,"finish_reason":null}]}',
  'data: [DONE]',
].join('\n\n');

export function chatResponses(): Responses {
  return {
    ...generationResponses('The answer, or a stream of chunks that ends with [DONE].', {
      whole: chatCompletion,
      event: chatChunk,
      example: EXAMPLE,
    }),
    ...errors(424),
  };
}
