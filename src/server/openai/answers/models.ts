import * as z from 'zod';
import type { Responses } from '../../routes/route.js';
import { about, component } from '../schemas/fields.js';
import { errors, jsonAnswer } from './shared.js';

const model = component(
  'Model',
  z.object({
    id: about(z.string(), "The name to give as 'model'."),
    object: z.literal('model'),
    created: about(z.int(), 'Seconds since 1970 at which the server began to serve it.'),
    owned_by: z.literal('skein'),
    root: about(z.string(), 'Of a LoRA adapter its base model; else the model itself.'),
    parent: about(z.string().nullable(), 'Of a LoRA adapter its base model; else null.'),
    max_model_len: about(
      z.int().optional(),
      'Tokens of the context, prompt and answer together; of a model that is loaded.',
    ),
  }),
  'A model that is served.',
);

export function modelListResponses(): Responses {
  const list = z.object({ object: z.literal('list'), data: z.array(model) });
  return { 200: jsonAnswer('The models.', list), ...errors(401) };
}

export function modelResponses(): Responses {
  return { 200: jsonAnswer('The model.', model), ...errors(401, 404) };
}
