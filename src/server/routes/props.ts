import * as z from 'zod';
import { findGenerator } from '../openai/route-context.js';
import { optional } from '../openai/schemas/fields.js';
import { defineRoute } from './route.js';

const query = z.strictObject({
  model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first that generates text.'),
});

export const propsRoute = defineRoute({
  method: 'get',
  path: '/props',
  tags: ['Models'],
  summary: "Tells a model's context and chat template, in the fields of llama.cpp's server",
  query,
  responses: async () => (await import('../openai/answers/models.js')).propsResponses(),
  handle: ({ query: { model: id } }, context) => {
    const { id: name, maxSeqLen, codec } = findGenerator(context, id);
    return Response.json({
      default_generation_settings: { n_ctx: maxSeqLen },
      model_alias: name,
      chat_template: codec.templateSource ?? '',
      modalities: { vision: false, audio: false },
      build_info: `skein ${context.version}`,
    });
  },
});

export const tokenizerInfoRoute = defineRoute({
  method: 'get',
  path: '/tokenizer_info',
  tags: ['Models'],
  summary: "Tells about a model's tokenizer",
  query,
  responses: async () => (await import('../openai/answers/models.js')).tokenizerInfoResponses(),
  handle: ({ query: { model: id } }, context) => {
    const { id: model, vocabSize, maxSeqLen, codec } = findGenerator(context, id);
    return Response.json({
      model,
      vocab_size: vocabSize,
      model_max_length: maxSeqLen,
      chat_template: codec.templateSource ?? null,
      special_tokens: codec.specialTexts ?? [],
    });
  },
});
