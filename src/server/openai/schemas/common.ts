import * as z from 'zod';
import { SAMPLING_RANGES } from '../../../../callbacks/sampling-params.js';
import { StopStrings } from '../../../../models/tokenizer/stop-strings.js';
import { guideFields } from '../guides.js';
import type { ChatRequest } from './chat.js';
import type { CompletionRequest } from './completions.js';
import { about, count, ignored, number, optional, shortText, tokenId } from './fields.js';
import { limitTexts } from './limit-texts.js';
import { logitBias } from './logit-bias.js';

const MAX_STOPS = 64;
/** Longest stop string, in UTF-16 units: each answer is held back by as many. */
const MAX_STOP_LENGTH = 4096;
const MAX_STOP_LENGTHS = 16_384;
const MAX_BAD_WORDS = 1024;
const MAX_BAD_WORD_LENGTH = 512;
const MAX_BAD_WORD_LENGTHS = 32_768;
const MAX_CHOICES = 128;
const MAX_SALT_LENGTH = 1024;

const stop = about(
  optional(
    z
      .union([z.string().min(1), z.array(z.string().min(1)).max(MAX_STOPS)], {
        error: `expected a string or up to ${MAX_STOPS} strings, none of them empty`,
      })
      .transform((value) => (typeof value === 'string' ? [value] : value))
      .superRefine(limitTexts('stop texts', { each: MAX_STOP_LENGTH, all: MAX_STOP_LENGTHS })),
  ).transform((texts) => new StopStrings(texts ?? [])),
  {
    description:
      `Texts that end the answer: one, or up to ${MAX_STOPS}, of ${MAX_STOP_LENGTH} characters at most each and ` +
      `${MAX_STOP_LENGTHS} together. They are not part of it.`,
    examples: [['\n\n']],
  },
);

const badWords = optional(
  z
    .array(z.string().min(1))
    .max(MAX_BAD_WORDS)
    .superRefine(limitTexts('bad words', { each: MAX_BAD_WORD_LENGTH, all: MAX_BAD_WORD_LENGTHS })),
  `Texts that are not generated: up to ${MAX_BAD_WORDS}, of ${MAX_BAD_WORD_LENGTH} characters at most each and ` +
    `${MAX_BAD_WORD_LENGTHS} together.`,
);

/** True for the integers of 64 bits with a sign, as in OpenAI's API. The nearest number to 2^63 - 1 is 2^63. */
function isSeed(value: number): boolean {
  return Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
}

export const samplingFields = {
  temperature: number(
    { min: 0, max: 2, integer: false },
    {
      description:
        'What the logits are divided by: 0 always takes the most probable token, more draws more freely.',
      default: 1,
    },
  ),
  top_p: number(SAMPLING_RANGES.topP, {
    description: 'Draws among the most probable tokens that make up this share of the probability; 1 = all.',
    default: 1,
  }),
  top_k: number(
    { min: -1, max: SAMPLING_RANGES.topK.max, integer: true },
    { description: 'Draws among this many of the most probable tokens; 0 or -1 = all.', default: 0 },
  ),
  min_p: number(SAMPLING_RANGES.minP, {
    description: 'Leaves out tokens less probable than this share of the most probable one; 0 = none.',
    default: 0,
  }),
  repetition_penalty: number(SAMPLING_RANGES.repetitionPenalty, {
    description:
      'Logits of tokens of the prompt and the answer so far are divided (negative ones multiplied) by it.',
    default: 1,
  }),
  presence_penalty: number(
    { min: -2, max: 2, integer: false },
    { description: 'Taken from the logits of tokens that the answer has.', default: 0 },
  ),
  frequency_penalty: number(
    { min: -2, max: 2, integer: false },
    { description: 'Taken from the logits of tokens, for each time that the answer has them.', default: 0 },
  ),
  no_repeat_ngram_size: number(SAMPLING_RANGES.noRepeatNgramSize, {
    description: 'No so many tokens in a row of prompt and answer come up a second time; 0 = off.',
    default: 0,
  }),
  bad_words: badWords,
  logit_bias: logitBias,
  seed: optional(z.number().refine(isSeed, 'expected an integer from -2^63 to 2^63 - 1'), {
    description:
      'An integer; the same seed gives the same answer, whatever else the server does. Not given: one is drawn.',
    type: ['integer', 'null'],
  }),
};

export const stopFields = {
  min_tokens: number(SAMPLING_RANGES.minLength, {
    description: 'Tokens before which neither end nor stop tokens are drawn.',
    default: 0,
  }),
  stop,
  stop_token_ids: optional(z.array(tokenId).max(MAX_STOPS), 'Tokens that end the answer.'),
  ignore_eos: optional(z.boolean(), {
    description: "Goes on past the model's own end tokens.",
    default: false,
  }),
  include_stop_str_in_output: optional(z.boolean(), {
    description: 'Leaves the stop text that ended the answer in it.',
    default: false,
  }),
  skip_special_tokens: optional(z.boolean(), {
    description: "Leaves the model's special tokens out of the text.",
    default: true,
  }),
};

/** Fields about the engine's treatment of a request, which OpenAI's API lacks. */
export const engineFields = {
  priority: optional(z.number().min(0).max(1), {
    description: 'Requests of a higher priority are started first, 0 to 1.',
    default: 0.5,
  }),
  cache_salt: optional(
    shortText(MAX_SALT_LENGTH).min(1),
    'Requests of different salts share no cached prompts, so that nobody can measure what others have asked.',
  ),
  time_limit_ms: count(
    1,
    'Milliseconds after which the answer ends with what it has, waiting in the queue included.',
  ),
  max_draft_len: count(0, 'Most tokens of a draft that the engine may verify at once; 0 = no speculation.'),
};

/** Fields of OpenAI's API for its own records. */
export const recordFields = {
  user: ignored('A name for the end user. Accepted; it has no bearing on the answer.'),
  metadata: ignored(),
  safety_identifier: ignored(),
  prompt_cache_key: ignored('Accepted; prompts are found in the cache by their content.'),
  prompt_cache_retention: ignored(),
  service_tier: ignored(),
};

const streamOptions = optional(
  z.object({
    include_usage: optional(z.boolean(), 'A last chunk with the usage and no choices.'),
    continuous_usage_stats: optional(z.boolean(), 'The usage so far in every chunk.'),
    include_obfuscation: ignored(),
  }),
  "What a stream carries besides the text; only with 'stream'.",
);

/** Fields common to chat and completions. */
export const commonFields = {
  model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first of them.'),
  max_tokens: count(1, 'Most tokens of the answer.'),
  ...samplingFields,
  ...stopFields,
  ...engineFields,
  ...recordFields,
  stream: optional(z.boolean(), {
    description: 'Answers with server-sent events while the text is generated, the last of them [DONE].',
    default: false,
  }),
  stream_options: streamOptions,
  n: optional(z.int().min(1).max(MAX_CHOICES), { description: 'Answers to each prompt.', default: 1 }),
  best_of: optional(
    z.int().min(1).max(MAX_CHOICES),
    "Answers that are generated, of which the best n are given; with 'use_beam_search' the number of beams. Default n.",
  ),
  use_beam_search: optional(z.boolean(), {
    description: 'Searches for the most probable answers instead of drawing; not with a stream.',
    default: false,
  }),
  length_penalty: number(
    { min: -100, max: 100, integer: false },
    {
      description:
        "Power of the length by which a beam's log-probability is divided; more prefers longer ones.",
      default: 1,
    },
  ),
  early_stopping: about(
    optional(z.union([z.boolean(), z.literal('never')], { error: 'expected true, false or "never"' })),
    {
      description:
        'When beam search ends: true, with as many ended beams as are wanted; false, by estimate; "never", by proof.',
      default: false,
    },
  ),
  prompt_logprobs: optional(
    z.int().min(-1),
    'Log-probabilities of the tokens of the prompt, and of so many of the most probable ones at each place (-1: all); not with a stream.',
  ),
  return_token_ids: optional(z.boolean(), {
    description: 'Token ids of the prompt and of the answer, beside their text.',
    default: false,
  }),
  ...guideFields,
};

/** Parsed values of the common fields. */
export type CommonRequest = Pick<
  ChatRequest,
  keyof ChatRequest & keyof CompletionRequest & keyof typeof commonFields
>;
