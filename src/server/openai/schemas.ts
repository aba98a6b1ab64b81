import * as z from 'zod';
import { closestName } from '../../../callbacks/did-you-mean.js';
import { SAMPLING_RANGES } from '../../../engine/decoding/sampling-params.js';
import { ApiError } from './errors.js';
import { guideFields, responseFormat } from './guides.js';
import { issueText } from './issue-text.js';

/** OpenAI's clients send null for "not given". */
function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/**
 * A field of the API that cannot work here (yet). Values that ask for nothing are accepted, so that clients which
 * always send the field are served; anything else is refused by name rather than ignored.
 */
function notSupported(reason: string, ...harmless: readonly unknown[]) {
  const accepted = new Set(['null', ...harmless.map((value) => JSON.stringify(value))]);
  return z
    .unknown()
    .optional()
    .superRefine((value, context) => {
      if (value === undefined || accepted.has(JSON.stringify(value))) return;
      context.addIssue({ code: 'custom', message: reason, params: { refused: true } });
    });
}

/** A field that has no bearing on the answer. */
const ignored = z.unknown().optional();

function number(range: { min: number; max: number; integer: boolean }) {
  const schema = range.integer ? z.int() : z.number();
  return optional(schema.min(range.min).max(range.max));
}

const count = (least: number) =>
  optional(
    z
      .int()
      .min(least)
      .max(2 ** 31 - 1),
  );
const tokenId = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
const MAX_STOPS = 64;
const MAX_BAD_WORDS = 1024;
const MAX_CHOICES = 128;
const MAX_PROMPTS = 256;

const stop = optional(
  z.union([z.string().min(1), z.array(z.string().min(1)).max(MAX_STOPS)], {
    error: `expected a string or up to ${MAX_STOPS} strings, none of them empty`,
  }),
).transform((value) => (value === undefined ? [] : typeof value === 'string' ? [value] : value));

/** Token ids are keys of an object, and so texts. */
const logitBias = optional(
  z.record(
    z.string().regex(/^\d{1,10}$/, 'expected the ids of tokens as keys'),
    z.number().min(-100).max(100),
  ),
).transform((biases) => {
  if (biases === undefined) return undefined;
  return new Map(Object.entries(biases).map(([token, bias]) => [Number(token), bias]));
});

const badWords = optional(z.array(z.string().min(1)).max(MAX_BAD_WORDS));

const streamOptions = optional(
  z.strictObject({
    include_usage: optional(z.boolean()),
    continuous_usage_stats: optional(z.boolean()),
    include_obfuscation: ignored,
  }),
);

/** Fields that both routes have. */
const commonFields = {
  model: optional(z.string()),
  max_tokens: count(1),
  min_tokens: number(SAMPLING_RANGES.minLength),
  temperature: number({ min: 0, max: 2, integer: false }),
  top_p: number(SAMPLING_RANGES.topP),
  top_k: number({ min: -1, max: SAMPLING_RANGES.topK.max, integer: true }),
  min_p: number(SAMPLING_RANGES.minP),
  repetition_penalty: number(SAMPLING_RANGES.repetitionPenalty),
  presence_penalty: number({ min: -2, max: 2, integer: false }),
  frequency_penalty: number({ min: -2, max: 2, integer: false }),
  no_repeat_ngram_size: number(SAMPLING_RANGES.noRepeatNgramSize),
  logit_bias: logitBias,
  bad_words: badWords,
  seed: optional(z.number().refine(Number.isInteger, 'expected an integer')),
  stop,
  stop_token_ids: optional(z.array(tokenId).max(MAX_STOPS)),
  ignore_eos: optional(z.boolean()),
  include_stop_str_in_output: optional(z.boolean()),
  skip_special_tokens: optional(z.boolean()),
  stream: optional(z.boolean()),
  stream_options: streamOptions,
  n: optional(z.int().min(1).max(MAX_CHOICES)),
  priority: optional(z.number().min(0).max(1)),
  cache_salt: optional(z.string().min(1)),
  time_limit_ms: count(1),
  max_draft_len: count(0),
  user: ignored,
  metadata: ignored,
  safety_identifier: ignored,
  prompt_cache_key: ignored,
  service_tier: ignored,
  best_of: optional(z.int().min(1).max(MAX_CHOICES)),
  use_beam_search: optional(z.boolean()),
  length_penalty: number({ min: -100, max: 100, integer: false }),
  early_stopping: optional(
    z.union([z.boolean(), z.literal('never')], { error: 'expected true, false or "never"' }),
  ),
  prompt_logprobs: notSupported('log-probs of the prompt'),
  return_token_ids: notSupported('token ids in the answer', false),
  ...guideFields,
};

const text = z.string();
const textPart = z.object({ type: z.literal('text'), text });
/** Content of a message: text, or parts that are all text. */
const content = z.union([text, z.array(textPart)], {
  error: 'expected a string or a list of {"type": "text"} parts (no other kind of part is supported)',
});

const message = z.discriminatedUnion('role', [
  z.object({ role: z.enum(['system', 'developer', 'user']), content, name: optional(text) }),
  z.object({
    role: z.literal('assistant'),
    content: content.nullish(),
    refusal: optional(text),
    name: optional(text),
    tool_calls: optional(z.array(z.looseObject({ type: optional(text) }))),
  }),
  z.object({
    role: z.enum(['tool', 'function']),
    content,
    tool_call_id: optional(text),
    name: optional(text),
  }),
]);

export const chatRequestSchema = z.strictObject({
  ...commonFields,
  messages: z.array(message).min(1),
  max_completion_tokens: count(1),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int().min(0).max(20)),
  add_generation_prompt: optional(z.boolean()),
  continue_final_message: optional(z.boolean()),
  chat_template_kwargs: optional(z.record(z.string(), z.unknown())),
  parallel_tool_calls: ignored,
  prediction: ignored,
  tools: notSupported('tools', []),
  tool_choice: notSupported('tools', 'none', 'auto'),
  functions: notSupported('tools', []),
  function_call: notSupported('tools', 'none', 'auto'),
  response_format: optional(responseFormat),
  modalities: notSupported('any modality but text', ['text']),
  audio: notSupported('audio'),
  reasoning_effort: notSupported('reasoning', 'none'),
  verbosity: notSupported('verbosity', 'medium'),
  web_search_options: notSupported('web search'),
  store: notSupported('stored answers', false),
});

const promptSchema = z.union(
  [
    z.string().transform((one) => [one]),
    z.array(z.string()).min(1).max(MAX_PROMPTS),
    z
      .array(tokenId)
      .min(1)
      .transform((one) => [one]),
    z.array(z.array(tokenId).min(1)).min(1).max(MAX_PROMPTS),
  ],
  {
    error: `expected a string, token ids, or a list of up to ${MAX_PROMPTS} of either, none of them empty`,
  },
);

export const completionRequestSchema = z.strictObject({
  ...commonFields,
  prompt: promptSchema,
  echo: optional(z.boolean()),
  logprobs: optional(z.int().min(0).max(20)),
  suffix: notSupported('infilling', ''),
});

export type ChatRequest = z.output<typeof chatRequestSchema>;
export type CompletionRequest = z.output<typeof completionRequestSchema>;
export type ChatRequestMessage = ChatRequest['messages'][number];

/** Fields that both routes share, parsed. */
export type CommonRequest = Pick<
  ChatRequest,
  keyof ChatRequest & keyof CompletionRequest & keyof typeof commonFields
>;

/** `messages[0].content` of ['messages', 0, 'content']. */
function paramName(path: readonly PropertyKey[]): string | null {
  if (path.length === 0) return null;
  return path.reduce<string>(
    (name, key) =>
      typeof key === 'number' ? `${name}[${key}]` : name === '' ? String(key) : `${name}.${String(key)}`,
    '',
  );
}

/** Validates a body. @throws ApiError 400 that names the field, what it should be and what is possible instead. */
export function parseRequest<T extends z.ZodObject>(schema: T, body: unknown): z.output<T> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ApiError(400, 'The body must be a JSON object.');
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw issueError(parsed.error.issues[0]!, Object.keys(schema.shape));
}

function issueError(issue: z.core.$ZodIssue, known: readonly string[]): ApiError {
  const param = paramName(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const key = issue.keys[0]!;
    const hint = param === null ? closestName(key, known) : null;
    return new ApiError(
      400,
      `Unknown field '${param === null ? key : `${param}.${key}`}'.${hint === null ? '' : ` Did you mean '${hint}'?`}`,
      { param: param === null ? key : `${param}.${key}`, code: 'unknown_parameter' },
    );
  }
  if (issue.code === 'custom' && issue.params?.refused === true) {
    return new ApiError(400, `'${param}' is not supported: this server does not have ${issue.message}.`, {
      param,
      code: 'unsupported_parameter',
    });
  }
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) {
    return new ApiError(400, `The field '${param}' is required.`, {
      param,
      code: 'missing_required_parameter',
    });
  }
  return new ApiError(400, `Invalid value for '${param}': ${issueText(issue)}.`, {
    param,
    code: issue.code === 'invalid_type' ? 'invalid_type' : 'invalid_value',
  });
}
