import * as z from 'zod';
import { ALWAYS_SHOWN, samplingFields } from '../../../generation/sampling-defaults.js';
import type { PromptTokens, TextCodec } from '../../../generation/text-model.js';
import { optional } from '../../../schemas/fields.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { findGenerator } from '../../answering/find-model.js';
import { ApiError } from '../../web/errors.js';
import { defineRoute } from '../services.js';

const query = z.strictObject({
  model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first that generates text.'),
});

export const propsRoute = defineRoute({
  method: 'get',
  path: '/props',
  tags: ['Models'],
  summary: "Returns a model's context and chat template, in the fields of llama.cpp's server",
  query,
  responses: async () => (await import('../answers/server.js')).propsResponses(),
  loadsModel: true,
  handle: async ({ query: { model: id } }, context) => {
    const model = findGenerator(context, id);
    const { id: name, maxSeqLen, codec, fileName, maxActiveRequests = 1, endTokens } = model;
    const textOf = (tokens: PromptTokens) => {
      const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
      return detokenizer.push(tokens) + detokenizer.flush();
    };
    return Response.json({
      default_generation_settings: {
        n_ctx: maxSeqLen,
        params: paramsOf(model),
      },
      total_slots: maxActiveRequests,
      model_alias: name,
      // Its folder is kept private; its name is shown by clients.
      model_path: fileName ?? name,
      chat_template: codec.templateSource ?? '',
      ...(hasOwnToolTemplate(codec) && { chat_template_tool_use: codec.toolTemplateSource }),
      bos_token: textOf((await codec.encodeText('')).slice(0, 1)),
      eos_token: textOf(endTokens.slice(0, 1)),
      modalities: { vision: model.sight != null, audio: false },
      build_info: `skein ${context.version}`,
      is_sleeping: false,
    });
  },
});

/** True where conversations with functions have a template of their own. */
function hasOwnToolTemplate({ templateSource, toolTemplateSource = null }: TextCodec): boolean {
  return toolTemplateSource !== null && toolTemplateSource !== templateSource;
}

/** What holds for a request that says nothing, by the names of llama.cpp. */
function paramsOf({ defaultMaxTokens, sampling = {} }: ServedGenerator): Record<string, number> {
  const { max_tokens: _, repetition_penalty, ...recommended } = samplingFields(sampling);
  return {
    n_predict: defaultMaxTokens,
    ...ALWAYS_SHOWN,
    ...recommended,
    ...(repetition_penalty === undefined ? {} : { repeat_penalty: repetition_penalty }),
  };
}

export const changePropsRoute = defineRoute({
  method: 'post',
  path: '/props',
  tags: ['Models'],
  summary: "Refuses to change a model's properties",
  responses: async () => (await import('../answers/server.js')).changePropsResponses(),
  handle: () => {
    throw new ApiError(
      400,
      'The properties of a model are those that the server was started with: nothing of them can be changed by a request.',
      { code: 'not_supported' },
    );
  },
});

export const tokenizerInfoRoute = defineRoute({
  method: 'get',
  path: '/tokenizer_info',
  tags: ['Models'],
  summary: "Describes a model's tokenizer",
  query,
  responses: async () => (await import('../answers/server.js')).tokenizerInfoResponses(),
  loadsModel: true,
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
