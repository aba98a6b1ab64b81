import * as z from 'zod';
import { SAMPLING_RANGES } from '../../../../callbacks/sampling-params.js';
import { StopStrings } from '../../../../models/tokenizer/stop-strings.js';
import {
  about,
  count,
  ignored,
  MAX_INT,
  number,
  optional,
  shortText,
  tokenId,
  tokenList,
} from '../../../schemas/fields.js';
import { guideFields } from '../guides.js';
import type { ChatRequest } from './chat.js';
import type { CompletionRequest } from './completions.js';
import { limitTexts } from './limit-texts.js';
import { logitBias } from './logit-bias.js';

const MAX_STOPS = 64;
/** Longest stop string, in UTF-16 units: each answer is held back by as many. */
const MAX_STOP_LENGTH = 4096;
const MAX_STOP_LENGTHS = 16_384;
const MAX_BAD_WORDS = 1024;
const MAX_BAD_WORD_LENGTH = 512;
const MAX_BAD_WORD_LENGTHS = 32_768;
const MAX_BREAKERS = 16;
const MAX_BREAKER_LENGTH = 40;
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

export const seed = (description: string) =>
  optional(z.number().refine(isSeed, 'expected an integer from -2^63 to 2^63 - 1'), {
    description,
    type: ['integer', 'null'],
  });

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
  repeat_penalty: number(
    SAMPLING_RANGES.repetitionPenalty,
    "llama.cpp's name of repetition_penalty; its `repeat_last_n` is 64 where it is not given.",
  ),
  repeat_last_n: number(SAMPLING_RANGES.penaltyLastN, {
    description:
      'Number of last tokens of prompt and answer that the penalties for repetition, presence and frequency see; -1 = all, 0 = none.',
    default: -1,
  }),
  no_repeat_ngram_size: number(SAMPLING_RANGES.noRepeatNgramSize, {
    description: 'No so many tokens in a row of prompt and answer come up a second time; 0 = off.',
    default: 0,
  }),
  typical_p: number(SAMPLING_RANGES.typicalP, {
    description:
      'Draws among the tokens whose surprise is nearest to the entropy, until they exceed this probability; 1 = all.',
    default: 1,
  }),
  top_n_sigma: number(
    { ...SAMPLING_RANGES.topNSigma, min: -1 },
    {
      description:
        'Leaves out tokens whose logit is more than so many standard deviations below the greatest; 0 or -1 = none.',
      default: 0,
    },
  ),
  xtc_probability: number(SAMPLING_RANGES.xtcProbability, {
    description:
      'How likely it is, at each token, that all tokens of at least `xtc_threshold` but the least probable of them are left out.',
    default: 0,
  }),
  xtc_threshold: number(SAMPLING_RANGES.xtcThreshold, {
    description: 'Probability from which `xtc_probability` leaves tokens out; above 0.5: none.',
    default: 0.1,
  }),
  dynatemp_range: number(SAMPLING_RANGES.dynatempRange, {
    description:
      'The temperature follows the entropy, from so much below `temperature` to so much above; 0 = it is constant.',
    default: 0,
  }),
  dynatemp_exponent: number(SAMPLING_RANGES.dynatempExponent, {
    description: 'Power by which the entropy moves the temperature in `dynatemp_range`.',
    default: 1,
  }),
  temperature_last: optional(z.boolean(), {
    description:
      "`top_p` and `min_p` see the distribution before the temperature, as llama.cpp's do; false: after it.",
    default: false,
  }),
  mirostat: number(SAMPLING_RANGES.mirostat, {
    description:
      'Version of mirostat, 1 or 2: keeps the surprise of tokens near `mirostat_tau`, in place of all other filters; 0 = off.',
    default: 0,
  }),
  mirostat_tau: number(SAMPLING_RANGES.mirostatTau, {
    description: 'Surprise in bits that mirostat aims at.',
    default: 5,
  }),
  mirostat_eta: number(SAMPLING_RANGES.mirostatEta, {
    description: 'How fast mirostat corrects itself.',
    default: 0.1,
  }),
  dry_multiplier: number(SAMPLING_RANGES.dryMultiplier, {
    description:
      'Taken from the logit of a token that would go on with a repetition of `dry_allowed_length` tokens; 0 = off.',
    default: 0,
  }),
  dry_base: number(SAMPLING_RANGES.dryBase, {
    description: 'Factor by which the penalty of `dry_multiplier` grows with each further repeated token.',
    default: 1.75,
  }),
  dry_allowed_length: number(SAMPLING_RANGES.dryAllowedLength, {
    description: 'Length from which repetitions are penalised.',
    default: 2,
  }),
  dry_penalty_last_n: number(SAMPLING_RANGES.dryPenaltyLastN, {
    description: 'Number of last tokens in which repetitions are looked for; -1 = all, 0 = off.',
    default: -1,
  }),
  dry_sequence_breakers: optional(z.array(z.string().min(1).max(MAX_BREAKER_LENGTH)).max(MAX_BREAKERS), {
    description: `Texts over which no repetition is seen: up to ${MAX_BREAKERS} of ${MAX_BREAKER_LENGTH} characters at most.`,
    default: ['\n', ':', '"', '*'],
  }),
  allowed_token_ids: optional(
    tokenList(1, false),
    'The only tokens that are generated, by their ids. Not given: all.',
  ),
  bad_words: badWords,
  logit_bias: logitBias,
  seed: seed(
    'An integer; the same seed gives the same answer, whatever else the server does. Not given: one is drawn.',
  ),
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

const budget = (text: string) => number({ min: -1, max: MAX_INT, integer: true }, text);

/** Longest template of a request, in UTF-16 units: models' own have some thousands. */
const MAX_TEMPLATE = 65_536;

export const chatTemplate = optional(
  shortText(MAX_TEMPLATE),
  `A chat template in place of the model's, in Jinja, of ${MAX_TEMPLATE} characters at most. Needs the server's option --trust-request-chat-template.`,
);

/** Limits of reasoning, of which a request has one. */
export const reasoningFields = {
  thinking_token_budget: budget(
    'Most tokens of reasoning: after them its end is forced, and the answer follows. -1 or not given: no limit but that of the answer.',
  ),
  thinking_budget: budget("Qwen's name of thinking_token_budget."),
  thinking_budget_tokens: budget("llama.cpp's name of thinking_token_budget."),
};

/** Fields about the engine's treatment of a request, which OpenAI's API lacks. */
export const engineFields = {
  priority: optional(z.number().min(-MAX_INT).max(MAX_INT), {
    description:
      "Requests of a higher priority are started first, 0 to 1. A number outside of these is vLLM's, where a lower one is started first and 0 is the default.",
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

export const cachePrompt = optional(z.boolean(), {
  description: 'false: takes nothing of the prompt from the cache, and leaves nothing there for others.',
  default: true,
});

/** Fields common to chat and completions. */
export const commonFields = {
  model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first of them.'),
  max_tokens: count(1, 'Most tokens of the answer.'),
  n_predict: number(
    { min: -1, max: MAX_INT, integer: true },
    "llama.cpp's name of max_tokens; -1: as if it were not given.",
  ),
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
  return_tokens_as_token_ids: optional(z.boolean(), {
    description: 'Tokens in log-probs are named "token_id:42", by their ids, instead of by their texts.',
    default: false,
  }),
  truncate_prompt_tokens: optional(
    z
      .int()
      .min(-1)
      .max(MAX_INT)
      .refine((value) => value !== 0, 'expected -1 or at least 1'),
    'Keeps only so many of the last tokens of a longer prompt; -1: as many as the context has room for beside the answer. Not given: a prompt that is too long is an error.',
  ),
  cache_prompt: cachePrompt,
  timings_per_token: optional(z.boolean(), {
    description:
      "llama.cpp's `timings` with the answer, and with each chunk of a stream: numbers of tokens, and milliseconds for them.",
    default: false,
  }),
  return_progress: optional(z.boolean(), {
    description:
      "llama.cpp's `prompt_progress` in chunks of a stream before the first token, one for each part of the prompt that was computed. Without effect where the answer is not streamed.",
    default: false,
  }),
  ...guideFields,
};

/** Parsed values of the common fields. */
export type CommonRequest = Pick<
  ChatRequest,
  keyof ChatRequest & keyof CompletionRequest & keyof typeof commonFields
>;
