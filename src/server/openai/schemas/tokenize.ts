import * as z from 'zod';
import { about, component, optional, tokenList } from '../../../schemas/fields.js';
import { message } from '../../../schemas/messages.js';
import { chatPromptSchema } from './chat.js';

const model = optional(
  z.string(),
  'A name that GET /v1/models lists. Not given: the first that generates text.',
);

export const tokenizeRequestSchema = component(
  'TokenizeRequest',
  chatPromptSchema.extend({
    model,
    prompt: optional(
      z.string(),
      'A text, taken as it is: special tokens in it are tokens. This or messages.',
    ),
    messages: optional(
      z.array(message).min(1),
      'A conversation, which the chat template of the model makes a prompt of, as in a chat with the same fields.',
    ),
    add_special_tokens: optional(
      z.boolean(),
      'Adds the tokens that the model wants around a text. Default: true with prompt, and false with messages, whose template writes them.',
    ),
    return_token_strs: optional(z.boolean(), {
      description: "The tokens' entries in the vocabulary besides.",
      default: false,
    }),
  }),
  "A text or a conversation, in vLLM's fields.",
);

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
