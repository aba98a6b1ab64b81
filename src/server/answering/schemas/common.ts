import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { REQUEST_FIELDS } from '../../../../callbacks/request/fields.js';
import { PARAMETERS } from '../../../../callbacks/request/parameters.js';
import { LENGTH_PENALTY_RANGE } from '../../../../callbacks/sampling-params.js';
import { StopStrings } from '../../../../models/tokenizer/stop-strings.js';
import {
  BAD_WORD_LIMITS,
  MAX_CHOICES,
  STOP_LIMITS,
  type WordLimits,
} from '../../../generation/word-limits.js';
import {
  about,
  count,
  ignored,
  number,
  optional,
  shortText,
  tokenId,
  tokenList,
} from '../../../schemas/fields.js';
import { PARAMETER_FIELDS } from '../../../schemas/parameter-fields.js';
import { guideFields } from '../guides.js';
import { logitBias } from './logit-bias.js';

const MAX_BREAKERS = 16;
const MAX_BREAKER_LENGTH = 40;
const MAX_SALT_LENGTH = 1024;

const stop = about(
  optional(
    z
      .union([z.string().min(1), z.array(z.string().min(1)).max(STOP_LIMITS.most)], {
        error: `expected a string or up to ${STOP_LIMITS.most} strings, none of them empty`,
      })
      .transform((value) => (typeof value === 'string' ? [value] : value))
      .superRefine(limitTexts('stop texts', STOP_LIMITS)),
  ).transform((texts) => new StopStrings(texts ?? [])),
  {
    description:
      `Texts that end the answer: one, or up to ${STOP_LIMITS.most}, of ${STOP_LIMITS.longest} characters at most each and ` +
      `${STOP_LIMITS.units} together. They are not part of it.`,
    examples: [['\n\n']],
  },
);

const badWords = optional(
  z.array(z.string().min(1)).max(BAD_WORD_LIMITS.most).superRefine(limitTexts('bad words', BAD_WORD_LIMITS)),
  `Texts that are not generated: up to ${BAD_WORD_LIMITS.most}, of ${BAD_WORD_LIMITS.longest} characters at most each and ` +
    `${BAD_WORD_LIMITS.units} together.`,
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

const { min_tokens, ...samplers } = PARAMETER_FIELDS;

export const samplingFields = {
  ...samplers,
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
  seed: seed(PARAMETERS.seed.help),
};

export const stopFields = {
  min_tokens,
  stop,
  stop_token_ids: optional(z.array(tokenId).max(STOP_LIMITS.most), 'Tokens that end the answer.'),
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

const budget = (text: string) => number({ min: -1, max: MAX_INT32, integer: true }, text);

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
  priority: optional(z.number().min(-MAX_INT32).max(MAX_INT32), {
    description:
      "Requests of a higher priority are started first, 0 to 1. A number outside of these is vLLM's, where a lower one is started first and 0 is the default.",
    default: REQUEST_FIELDS.priority.default,
  }),
  cache_salt: optional(
    shortText(MAX_SALT_LENGTH).min(1),
    'Requests of different salts share no cached prompts, so that no client can measure what others have asked.',
  ),
  time_limit_ms: count(
    1,
    'Milliseconds after which the answer ends with what it has, waiting in the queue included.',
  ),
  max_draft_len: count(0, 'Most tokens of a draft that the engine may verify at once; 0 = no speculation.'),
};

/** Fields of OpenAI's API for its own records. */
const recordFields = {
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
    { min: -1, max: MAX_INT32, integer: true },
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
  length_penalty: number(LENGTH_PENALTY_RANGE, {
    description:
      "Power of the length by which a beam's log-probability is divided; more prefers longer ones.",
    default: 1,
  }),
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
    'Log-probabilities of the tokens of the prompt, and of this number of the most probable ones at each place (-1: all); not with a stream.',
  ),
  return_token_ids: optional(z.boolean(), {
    description: 'Token ids of the prompt and of the answer, besides their text.',
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
      .max(MAX_INT32)
      .refine((value) => value !== 0, 'expected -1 or at least 1'),
    'Keeps only this number of the last tokens of a longer prompt; -1: as many as the context has room for besides the answer. Not given: a prompt that is too long is an error.',
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
export type CommonRequest = z.output<z.ZodObject<typeof commonFields>>;

/** Makes a check for superRefine that limits texts. @param what name of the texts, for errors */
function limitTexts(what: string, { longest: each, units: all }: WordLimits) {
  return (texts: readonly string[], context: z.RefinementCtx): void => {
    const refuse = (message: string, path: number[] = []) =>
      context.addIssue({ code: 'custom', message, path, continue: false });
    const long = texts.findIndex((text) => text.length > each);
    if (long >= 0) {
      const place = texts.length === 1 ? [] : [long];
      refuse(`it is ${texts[long]!.length} characters long, at most ${each} are taken`, place);
      return;
    }
    const sum = texts.reduce((length, text) => length + text.length, 0);
    if (sum > all) refuse(`the ${what} have ${sum} characters together, at most ${all} are taken`);
  };
}
