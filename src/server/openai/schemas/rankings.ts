import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { about, component, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { without } from '../../../schemas/other-field.js';
import { OTHER_RERANK_FIELDS, OTHER_SCORE_FIELDS } from '../../answering/schemas/other-fields.js';
import { commonFields, truncationFields } from './encoder-fields.js';

const MAX_DOCUMENTS = 2048;

const document = z.union([z.string(), z.object({ text: about(z.string(), 'The text of the document.') })], {
  error: 'expected a string or an object with a text',
});

const MAX_INSTRUCTION_UNITS = 4096;

/** What a reranker is instructed to look for. */
const instructionFields = {
  instruction: optional(
    z.string().max(MAX_INSTRUCTION_UNITS),
    "What is looked for, for models whose chat template has a place for it, as Qwen3-Reranker's. Not given: the model's own.",
  ),
  instruct: optional(z.string().max(MAX_INSTRUCTION_UNITS), 'The same in SGLang.'),
};

/** Fields of a ranking, whatever the API. */
export const rankingFields = {
  query: about(z.string(), 'What the documents are to answer.'),
  documents: about(
    z.array(document).min(1).max(MAX_DOCUMENTS),
    `Up to ${MAX_DOCUMENTS} texts, as strings or as objects with a text.`,
  ),
  top_n: optional(z.int().min(1).max(MAX_INT32), 'Results that are given, the best first. Default: all.'),
  ...instructionFields,
};

export const rerankRequestSchema = component(
  'RerankRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      ...rankingFields,
      top_k: optional(rankingFields.top_n, "Voyage's name of top_n."),
      return_documents: optional(z.boolean(), {
        description:
          'Gives the text of each document with its result. In `data` it is given where this is true.',
        default: true,
      }),
      ...truncationFields,
    }),
    without(OTHER_RERANK_FIELDS, 'truncation truncate'),
  ),
  'The fields of Jina, Cohere and Voyage.',
);

export type RerankRequest = z.output<typeof rerankRequestSchema>;

const texts = (text: string) =>
  about(
    z.union([z.string().transform((one) => [one]), z.array(z.string()).min(1).max(MAX_DOCUMENTS)], {
      error: `expected a string, or a list of up to ${MAX_DOCUMENTS} of them that is not empty`,
    }),
    text,
  );

export const scoreRequestSchema = component(
  'ScoreRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      ...instructionFields,
      text_1: texts('The first text of each pair; one text stands before each of text_2.'),
      text_2: texts('The second text of each pair.'),
    }),
    OTHER_SCORE_FIELDS,
  ),
  "vLLM's fields.",
);

export type ScoreRequest = z.output<typeof scoreRequestSchema>;
