import * as z from 'zod';
import { component, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { without } from '../../../schemas/other-field.js';
import { OTHER_ENCODER_FIELDS } from '../../answering/schemas/other-fields.js';
import { activationFields } from './classify.js';
import { encodingFormat } from './embeddings.js';
import { commonFields, dimensions, input, promptName, truncationSide } from './encoder-fields.js';

const POOLING_TASKS = ['embed', 'classify', 'score', 'token_embed', 'token_classify'] as const;

export const poolingRequestSchema = component(
  'PoolingRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      truncation_side: truncationSide,
      input,
      task: optional(
        z.enum(POOLING_TASKS),
        "What is given of each input: its embedding; the scores of a classifier's labels, which of a cross-encoder are one (score is another name of it); a vector of each token; or the weight of each token. Not given: the first of them that the model has.",
      ),
      encoding_format: encodingFormat,
      dimensions,
      ...activationFields,
      normalize: optional(z.boolean(), 'An older name of use_activation where texts are embedded.'),
      prompt_name: promptName,
    }),
    without(OTHER_ENCODER_FIELDS, 'task use_activation activation normalize'),
  ),
  "vLLM's fields.",
);

export type PoolingRequest = z.output<typeof poolingRequestSchema>;
