import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { about, component, ignored, optional, shortText } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { cachePrompt, engineFields, samplingFields, stopFields } from '../../answering/schemas/common.js';
import { OTHER_COMPLETION_FIELDS } from '../../answering/schemas/other-fields.js';

const MAX_EXTRA = 256;
const MAX_SHOWN = 64;

export const infillRequestSchema = component(
  'InfillRequest',
  withOtherFields(
    z.object({
      model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first of them.'),
      input_prefix: about(z.string(), 'The text in front of the gap; of a long one the end is kept.'),
      input_suffix: about(z.string(), 'The text after the gap; of a long one the beginning is kept.'),
      input_extra: optional(
        z
          .array(
            z.object({
              filename: optional(shortText(1024), { description: 'Name of the file.', default: 'tmp' }),
              text: about(z.string(), 'Text of the file, or of a part of it.'),
            }),
          )
          .max(MAX_EXTRA),
        `Other files, or parts of them: up to ${MAX_EXTRA}. Of too many the last are kept.`,
      ),
      prompt: optional(z.string(), 'Text after the prefix, which is never cut.'),
      n_predict: optional(
        z.int().min(-1).max(MAX_INT32),
        'Most tokens of the answer; -1, and not given: as many as the server gives a chat.',
      ),
      ...samplingFields,
      ...stopFields,
      ...engineFields,
      cache_prompt: cachePrompt,
      stream: optional(z.boolean(), { description: 'Answers with server-sent events.', default: false }),
      return_tokens: optional(z.boolean(), {
        description: 'Returns the tokens of the answer.',
        default: false,
      }),
      response_fields: optional(
        z.array(shortText(128)).max(MAX_SHOWN),
        'Fields of the answer that are wanted, such as content or timings/prompt_n. Not given: all.',
      ),
      samplers: ignored(
        'Accepted; the samplers have one order here, and the one for infilling is not there.',
      ),
      n_indent: ignored(),
      t_max_prompt_ms: ignored(),
      t_max_predict_ms: ignored(),
      id_slot: ignored('Accepted; there are no slots to choose among.'),
    }),
    OTHER_COMPLETION_FIELDS,
  ),
  "The fields of llama.cpp's server.",
);

export type InfillRequest = z.output<typeof infillRequestSchema>;
