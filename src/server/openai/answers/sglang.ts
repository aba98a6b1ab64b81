import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

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
