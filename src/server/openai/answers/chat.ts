import * as z from 'zod';
import type { Responses } from '../../routes/route.js';
import { about, component } from '../schemas/fields.js';
import { answerOrStream, envelope, errors, finishReason, stopReason, usageSchema } from './shared.js';

const tokenFields = {
  token: about(z.string(), 'The text of the token; where it is no whole character, its bytes as \\xNN.'),
  logprob: about(z.number(), 'Its natural log-probability, -9999 at least.'),
  bytes: about(z.array(z.int()), 'Its bytes, 0 to 255.'),
};

export const chatLogProbs = component(
  'ChatLogProbs',
  z.object({
    content: z.array(z.object({ ...tokenFields, top_logprobs: z.array(z.object(tokenFields)) })),
    refusal: z.null(),
  }),
  'Log-probabilities of the tokens of an answer.',
);

const logProbs = about(chatLogProbs.nullable(), 'With `logprobs` only.');

const chatCompletion = component(
  'ChatCompletion',
  z.object({
    ...envelope('chat.completion', 'chatcmpl'),
    choices: z.array(
      z.object({
        index: z.int(),
        message: z.object({ role: z.literal('assistant'), content: z.string(), refusal: z.null() }),
        logprobs: logProbs,
        finish_reason: finishReason,
        stop_reason: stopReason,
      }),
    ),
    usage: usageSchema,
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
            content: about(z.string().optional(), 'More text.'),
          }),
          logprobs: logProbs,
          finish_reason: about(finishReason.nullable(), 'In the last chunk of a choice.'),
          stop_reason: stopReason.optional(),
        }),
      ),
      'Empty in the chunk of the usage.',
    ),
    usage: about(usageSchema.nullish(), 'With `stream_options`.'),
  }),
  'The data of one event of a stream.',
);

const EXAMPLE = [
  'data: {"id":"chatcmpl-1f6d","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"Paris"},"logprobs":null,"finish_reason":null}]}',
  'data: [DONE]',
].join('\n\n');

export function chatResponses(): Responses {
  return {
    200: answerOrStream('The answer, or a stream of chunks that ends with [DONE].', {
      whole: chatCompletion,
      event: chatChunk,
      example: EXAMPLE,
    }),
    ...errors(400, 401, 404, 413, 429, 500, 503),
  };
}
