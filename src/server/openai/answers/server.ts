import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

export const modelSchema = component(
  'Model',
  z.object({
    id: about(z.string(), "The name to give as 'model'."),
    object: z.literal('model'),
    created: about(z.int(), 'Seconds since 1970 at which the server began to serve it.'),
    owned_by: z.literal('skein'),
    root: about(z.string(), 'Of a LoRA adapter its base model; else the model itself.'),
    parent: about(z.string().nullable(), 'Of a LoRA adapter its base model; else null.'),
    sampling_defaults: about(
      z.record(z.string(), z.number()).optional(),
      'Settings of requests that have none of their own, as the makers of the model recommend them.',
    ),
    max_model_len: about(
      z.int().optional(),
      'Tokens of the context, prompt and answer together; of a model that is loaded.',
    ),
    input_modalities: about(
      z.array(z.enum(['text', 'image'])).optional(),
      'What messages may have: texts, and pictures where the model sees. Of a loaded model that generates text.',
    ),
    workers: about(
      z.int().optional(),
      'Workers that answer for it; 0: it is known, and its requests wait for the first. Of a model of a gateway.',
    ),
    loading_workers: about(
      z.int().optional(),
      'Workers that load it, and take no requests yet; absent: none does. Of a model of a gateway.',
    ),
    loading_fraction: about(
      z.number().optional(),
      'How far the foremost of them is with what it downloads or converts; absent: none says.',
    ),
    system_fingerprints: about(
      z.array(z.string()).optional(),
      'Fingerprints of the engines that answer at present: several where workers of a gateway differ. Of a loaded model that generates text.',
    ),
  }),
  'A model that is served.',
);

export function propsResponses(): Responses {
  const answer = z.object({
    default_generation_settings: z.object({
      n_ctx: about(z.int(), 'Tokens of the context.'),
      params: about(z.looseObject({}), 'What holds for a request that does not say otherwise.'),
    }),
    total_slots: about(z.int(), 'Requests that are computed at once.'),
    model_path: about(z.string(), 'Name of the file or folder of the model.'),
    bos_token: about(z.string(), "The token in front of a text; '' where there is none."),
    eos_token: about(z.string(), 'The token that ends an answer.'),
    is_sleeping: z.boolean(),
    model_alias: about(z.string(), 'The name of the model.'),
    chat_template: about(z.string(), "Source of the chat template; '' where there is none."),
    chat_template_tool_use: about(
      z.string().optional(),
      'Source of the template for conversations with functions, where it is another.',
    ),
    modalities: z.object({ vision: z.boolean(), audio: z.boolean() }),
    build_info: about(z.string(), 'The version of the server.'),
  });
  return { 200: jsonAnswer('The properties.', answer), ...errors(400, 401, 404) };
}

export function mcpServersResponses(): Responses {
  const server = z.object({
    object: z.literal('mcp_server'),
    server_label: about(z.string(), "The name to give as 'server_label' of a tool of the type mcp."),
  });
  const list = z.object({ object: z.literal('list'), data: z.array(server) });
  return { 200: jsonAnswer('The servers, in the order of the options.', list), ...errors(401) };
}

export function changePropsResponses(): Responses {
  return errors(400, 401);
}

export function tokenizerInfoResponses(): Responses {
  const answer = z.object({
    model: z.string(),
    vocab_size: about(z.int(), 'Number of tokens.'),
    model_max_length: about(z.int(), 'Tokens of the context.'),
    chat_template: about(z.string().nullable(), 'Source of the chat template; null where there is none.'),
    special_tokens: about(z.array(z.string()), 'Texts of special tokens.'),
  });
  return { 200: jsonAnswer('The tokenizer.', answer), ...errors(400, 401, 404) };
}

export function modelInfoResponses(): Responses {
  const answer = z.object({
    model_path: about(z.string(), 'Name of the file or folder of the model.'),
    served_model_name: z.string(),
    is_generation: about(z.boolean(), 'It generates text.'),
    max_context_length: about(z.int(), 'Tokens of the context.'),
    weight_version: about(z.string(), 'Changes with the files of the model.'),
    model_type: about(z.string().optional(), 'Its architecture.'),
  });
  return { 200: jsonAnswer('The model.', answer), ...errors(401, 404) };
}

export function serverInfoResponses(): Responses {
  const answer = z.object({
    version: about(z.string(), 'The version of the server.'),
    served_model_name: about(z.string(), 'The name of the first model.'),
    tp_size: z.literal(1),
    dp_size: z.literal(1),
    context_length: about(z.int(), 'Tokens of the context.'),
    max_running_requests: about(z.int().optional(), 'Requests that are computed at once.'),
    max_total_num_tokens: about(z.int().optional(), 'Tokens of the KV cache.'),
    page_size: about(z.int().optional(), 'Tokens of a block of the KV cache.'),
  });
  return { 200: jsonAnswer('The server.', answer), ...errors(401, 404) };
}

export function getLoadResponses(): Responses {
  const answer = z.array(
    z.object({
      dp_rank: z.literal(0),
      num_reqs: about(z.int(), 'Requests in the batch, and those that wait.'),
      num_waiting_reqs: z.int(),
      num_tokens: about(z.int(), 'Tokens of the KV cache in use.'),
    }),
  );
  return { 200: jsonAnswer('The load.', answer), ...errors(400, 401) };
}

export function healthGenerateResponses(): Responses {
  return { 200: { description: 'The engine works.' }, ...errors(400, 401, 503) };
}

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
