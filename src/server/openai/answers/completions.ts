import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import {
  choiceFields,
  envelope,
  finishReason,
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

const logProbs = component(
  'CompletionLogProbs',
  z.object({
    tokens: about(z.array(z.string()), 'The texts of the tokens.'),
    token_logprobs: about(
      z.array(z.number().nullable()),
      'Their natural log-probabilities, -9999 at least; null for the first token of an echoed prompt.',
    ),
    top_logprobs: about(
      z.array(z.record(z.string(), z.number()).nullable()),
      'The most probable tokens at each place, with their log-probabilities.',
    ),
    text_offset: about(z.array(z.int()), 'Where each token begins in the text, in code points.'),
  }),
  'Log-probabilities of the tokens of an answer.',
);

const choice = <Reason extends z.ZodType>(reason: Reason) =>
  z.object({
    index: about(z.int(), 'Choice p * n + k is the k-th answer to prompt p.'),
    text: z.string(),
    logprobs: orNull(logProbs, 'With `logprobs` only.'),
    finish_reason: reason,
    stop_reason: stopReason,
    prompt_logprobs: promptLogProbs,
    prompt_token_ids: promptTokenIds,
    ...choiceFields,
  });

const completion = component(
  'Completion',
  z.object({
    ...envelope('text_completion', 'cmpl'),
    choices: z.array(choice(finishReason)),
    usage: usageSchema,
    timings,
  }),
  'An answer that is whole.',
);

const completionChunk = component(
  'CompletionChunk',
  z.object({
    ...envelope('text_completion', 'cmpl'),
    choices: z.array(choice(about(finishReason.nullable(), 'In the last chunk of a choice.'))),
    usage: orNull(usageSchema, 'With `stream_options`.').optional(),
    timings,
    prompt_progress: promptProgress,
  }),
  'The data of one event of a stream.',
);

const EXAMPLE = [
  'data: {"id":"cmpl-1f6d","object":"text_completion","created":1700000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"text":" there","logprobs":null,"finish_reason":null,"stop_reason":null}]}',
  'data: [DONE]',
].join('\n\n');

export function completionResponses(): Responses {
  return generationResponses('The answer, or a stream of chunks that ends with [DONE].', {
    whole: completion,
    event: completionChunk,
    example: EXAMPLE,
  });
}

const infillProgress = {
  index: z.literal(0),
  content: about(z.string(), 'The text, or a piece of it.'),
  tokens: about(z.array(z.int()), 'With `return_tokens`: its tokens.'),
  id_slot: about(z.literal(-1), 'There are no slots.'),
  tokens_predicted: about(z.int(), 'Tokens of the answer so far.'),
  tokens_evaluated: about(z.int(), 'Tokens of the prompt.'),
};

const infillAnswer = component(
  'InfillAnswer',
  z.object({
    ...infillProgress,
    stop: about(z.boolean(), 'true: it has ended, and the other fields are there.'),
    model: z.string().optional(),
    generation_settings: z.looseObject({}).optional(),
    prompt: about(z.string().optional(), 'The prompt with its special tokens.'),
    has_new_line: z.boolean().optional(),
    truncated: about(z.boolean().optional(), 'Not all that was sent is in the prompt.'),
    stop_type: z.enum(['eos', 'limit', 'word']).optional(),
    stopping_word: z.string().optional(),
    tokens_cached: z.int().optional(),
    timings,
  }),
  "An answer of llama.cpp's form; with `response_fields` only those fields.",
);

export function infillResponses(): Responses {
  return generationResponses('The answer, or a stream of pieces, the last of which has `stop` true.', {
    whole: infillAnswer,
    event: infillAnswer,
    example:
      'data: {"index":0,"content":" a + b","tokens":[],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":9}',
  });
}
