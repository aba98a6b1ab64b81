import * as z from 'zod';
import { INPUT_TYPES, INPUT_TYPES_OF_TASKS } from '../../../encoding/prompts.js';
import { VECTOR_TYPES } from '../../../encoding/vector-types.js';
import { component, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { without } from '../../../schemas/other-field.js';
import { OTHER_ENCODER_FIELDS } from '../../answering/schemas/other-fields.js';
import {
  commonFields,
  dimensions,
  inputOf,
  promptName,
  truncationFields,
  truncationSide,
} from './encoder-fields.js';
import { textsOrPictures } from './text-objects.js';

const JINA_TYPES = ['float', 'base64', 'binary', 'ubinary'] as const;

const TASKS = Object.keys(INPUT_TYPES_OF_TASKS) as (keyof typeof INPUT_TYPES_OF_TASKS)[];

export const encodingFormat = optional(z.enum(['float', 'base64']), {
  description: 'Numbers, or base64 of 32-bit floats in little-endian order.',
  default: 'float',
});

const OTHER_EMBEDDING_FIELDS = without(
  OTHER_ENCODER_FIELDS,
  'output_dimension output_dtype truncation truncate input_type task embedding_type normalize',
);

export const embeddingRequestSchema = component(
  'EmbeddingRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      input: inputOf(textsOrPictures, "as strings or as Jina's objects with a text or an image"),
      encoding_format: encodingFormat,
      dimensions,
      output_dimension: optional(dimensions, "Voyage's name of dimensions."),
      output_dtype: optional(z.enum(VECTOR_TYPES), {
        description: `Voyage's type of the values: ${VECTOR_TYPES.join(', ')}. In base64 these are the bytes of that type.`,
        default: 'float',
      }),
      ...truncationFields,
      truncation_side: truncationSide,
      input_type: optional(
        z.enum([...INPUT_TYPES, 'passage']),
        "What the texts are for, as in Voyage's API: the model's prompt for it is put in front of them, if it has one.",
      ),
      task: optional(z.enum(TASKS), `The same in Jina's API: ${TASKS.join(', ')}.`),
      embedding_type: optional(z.enum(JINA_TYPES), {
        description: `Jina's type of the values: ${JINA_TYPES.join(', ')}; base64 is that of 32-bit floats.`,
        default: 'float',
      }),
      normalized: optional(
        z.boolean(),
        "Whether embeddings are brought to length 1, as in Jina's API. Not given: as the model has them. A model whose embeddings have length 1 refuses false.",
      ),
      normalize: optional(z.boolean(), 'The same in vLLM and text-embeddings-inference.'),
      prompt_name: promptName,
    }),
    OTHER_EMBEDDING_FIELDS,
  ),
  "OpenAI's fields, vLLM's truncate_prompt_tokens, and those of Voyage's and Jina's APIs.",
);

export type EmbeddingRequest = z.output<typeof embeddingRequestSchema>;
