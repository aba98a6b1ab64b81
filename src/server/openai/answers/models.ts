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
