import * as z from 'zod';
import { message } from './chat.js';
import { chatTemplate } from './common.js';
import { about, component, optional, tokenList } from './fields.js';

const model = optional(
  z.string(),
  'A name that GET /v1/models lists. Not given: the first that generates text.',
);

/** Fields of a conversation. */
const chatFields = {
  messages: optional(
    z.array(message).min(1),
    'A conversation, which the chat template of the model makes a prompt of.',
  ),
  add_generation_prompt: optional(
    z.boolean(),
    'With messages: ends the prompt with the beginning of an answer. Default: true, unless the last message is continued.',
  ),
  continue_final_message: optional(z.boolean(), {
    description: 'With messages: the last one, of the assistant, is left open.',
    default: false,
  }),
  chat_template: chatTemplate,
  chat_template_kwargs: optional(
    z.record(z.string(), z.unknown()),
    'With messages: further variables of the chat template.',
  ),
  tools: optional(
    z.array(z.record(z.string(), z.unknown())),
    'With messages: tools, as the chat template describes them to the model.',
  ),
};

export const tokenizeRequestSchema = component(
  'TokenizeRequest',
  z.object({
    model,
    prompt: optional(
      z.string(),
      'A text, taken as it is: special tokens in it are tokens. This or messages.',
    ),
    add_special_tokens: optional(
      z.boolean(),
      'Adds the tokens that the model wants around a text. Default: true with prompt, and false with messages, whose template writes them.',
    ),
    return_token_strs: optional(z.boolean(), {
      description: "The tokens' entries in the vocabulary besides.",
      default: false,
    }),
    ...chatFields,
  }),
  "A text or a conversation, in vLLM's fields.",
);

export const renderPromptSchema = component(
  'RenderPromptRequest',
  z.object({
    model,
    prompt: about(z.string(), 'A text, taken as it is: special tokens in it are tokens.'),
    add_special_tokens: optional(z.boolean(), {
      description: 'Adds the tokens that the model wants around a text.',
      default: true,
    }),
  }),
  "A prompt, in vLLM's fields.",
);

export type RenderPromptRequest = z.output<typeof renderPromptSchema>;

export const applyTemplateSchema = component(
  'ApplyTemplateRequest',
  z.object({
    model,
    ...chatFields,
    messages: about(
      z.array(message).min(1),
      'A conversation, which the chat template of the model makes a prompt of.',
    ),
  }),
  "A conversation, in the fields of vLLM and llama.cpp's server.",
);

export type ApplyTemplateRequest = z.output<typeof applyTemplateSchema>;

/** Most tokens: more than any context holds. */
const MAX_TOKENS = 2 ** 17;

const tokens = about(
  tokenList(0, false).refine((ids) => ids.length <= MAX_TOKENS, {
    error: ({ input }) =>
      `it holds ${(input as unknown[]).length} tokens, at most ${MAX_TOKENS} are taken at once`,
  }),
  { description: 'Token ids.' },
);

export const detokenizeRequestSchema = component(
  'DetokenizeRequest',
  z.object({
    model,
    tokens,
  }),
  "Tokens, in vLLM's fields.",
);

export type TokenizeRequest = z.output<typeof tokenizeRequestSchema>;
export type DetokenizeRequest = z.output<typeof detokenizeRequestSchema>;
