import * as z from 'zod';
import { about, component, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { without } from '../../../schemas/other-field.js';
import { OTHER_ENCODER_FIELDS } from '../../answering/schemas/other-fields.js';
import { commonFields, cuttingFields, input, MAX_INPUTS, model, truncationSide } from './encoder-fields.js';

/** How vLLM says whether scores or logits are given. */
export const activationFields = {
  use_activation: optional(z.boolean(), {
    description: "False gives the logits, without the model's softmax or sigmoid.",
    default: true,
  }),
  activation: optional(z.boolean(), 'An older name of use_activation.'),
};

export const classifyRequestSchema = component(
  'ClassifyRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      truncation_side: truncationSide,
      input,
      ...activationFields,
    }),
    without(OTHER_ENCODER_FIELDS, 'use_activation activation'),
  ),
  "vLLM's fields.",
);

export type ClassifyRequest = z.output<typeof classifyRequestSchema>;

const text = z.string();
const oneOrTwo = z.array(text).min(1).max(2);

/** Texts as text-embeddings-inference takes them, as a list of texts and pairs. */
const inputs = about(
  z.union(
    [
      text.transform((one) => ({ single: true, items: [[one]] })),
      oneOrTwo.transform((pair) => ({ single: true, items: [pair] })),
      z
        .array(oneOrTwo)
        .min(1)
        .max(MAX_INPUTS)
        .transform((items) => ({ single: false, items })),
    ],
    {
      error: `expected a text, a pair of texts, or a list of up to ${MAX_INPUTS} lists of one or two texts`,
    },
  ),
  {
    description: `A text, or a list of two that are classified together, or a list of up to ${MAX_INPUTS} lists of one or two texts.`,
    examples: ['The cat sits outside.'],
  },
);

export const predictRequestSchema = component(
  'PredictRequest',
  withOtherFields(
    z.object({
      model,
      inputs,
      ...cuttingFields,
      raw_scores: optional(z.boolean(), {
        description: "Gives the logits, without the model's softmax or sigmoid.",
        default: false,
      }),
    }),
    without(OTHER_ENCODER_FIELDS, 'truncate'),
  ),
  "The fields of text-embeddings-inference's /predict.",
);

export type PredictRequest = z.output<typeof predictRequestSchema>;
