import * as z from 'zod';
import { component } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { without } from '../../../schemas/other-field.js';
import { OTHER_ENCODER_FIELDS } from '../../answering/schemas/other-fields.js';
import { cuttingFields, input, model, promptName } from './encoder-fields.js';

export const tokenOutputSchema = component(
  'TokenOutputRequest',
  withOtherFields(
    z.object({ model, inputs: input, ...cuttingFields, prompt_name: promptName }),
    without(OTHER_ENCODER_FIELDS, 'truncate'),
  ),
  "The fields of text-embeddings-inference's /embed_sparse and /embed_all.",
);

export type TokenOutputRequest = z.output<typeof tokenOutputSchema>;
