import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

export function tokenizeResponses(): Responses {
  const answer = z.object({
    count: about(z.int(), 'Number of tokens.'),
    max_model_len: about(z.int(), 'Tokens of the context, prompt and answer together.'),
    tokens: z.array(z.int()),
    token_strs: about(z.array(z.string()).nullable(), 'Entries of the vocabulary; with return_token_strs.'),
  });
  return { 200: jsonAnswer('The tokens.', answer), ...errors(400, 401, 404, 413, 429, 503) };
}

export function detokenizeResponses(): Responses {
  const answer = z.object({ prompt: about(z.string(), 'The text, special tokens included.') });
  return { 200: jsonAnswer('The text.', answer), ...errors(400, 401, 404, 413, 503) };
}

export function applyTemplateResponses(): Responses {
  const answer = z.object({ prompt: about(z.string(), 'The prompt, special tokens included.') });
  return { 200: jsonAnswer('The prompt.', answer), ...errors(400, 401, 404, 413, 429, 503) };
}

const renderedSchema = z.object({
  model: z.string(),
  token_ids: about(z.array(z.int()), 'What the model would get.'),
});

export function renderPromptResponses(): Responses {
  return {
    200: jsonAnswer('An entry for the prompt.', z.array(renderedSchema)),
    ...errors(400, 401, 404, 413, 429, 503),
  };
}

export function renderConversationResponses(): Responses {
  return { 200: jsonAnswer('The tokens.', renderedSchema), ...errors(400, 401, 404, 413, 429, 503) };
}

export function cancelResponses(): Responses {
  const answer = z.object({
    id: z.string(),
    object: z.literal('request.cancelled'),
    cancelled: about(z.int(), 'Requests that had the id.'),
  });
  return { 200: jsonAnswer('The request ends.', answer), ...errors(401, 404, 503) };
}

export function cacheResetResponses(): Responses {
  const answer = z.object({
    object: z.literal('cache.reset'),
    dropped_blocks: about(z.int(), 'Blocks that could have been found, of all models.'),
    models: z.array(z.object({ model: z.string(), dropped_blocks: z.int() })),
  });
  return { 200: jsonAnswer('Nothing of before will be found.', answer), ...errors(400, 401, 404, 503) };
}

export function invocationResponses(): Responses {
  return {
    200: jsonAnswer('The answer of the route that the body is for.', z.looseObject({})),
    ...errors(400, 401, 404, 413, 429, 500, 503),
  };
}

export function adapterResponses(): Responses {
  const example = "Success: LoRA adapter 'sql' added successfully.";
  return {
    200: {
      description: 'It is done.',
      content: { 'text/plain': { schema: z.string(), example } },
    },
    ...errors(400, 401, 403, 404, 413, 429, 503),
  };
}
