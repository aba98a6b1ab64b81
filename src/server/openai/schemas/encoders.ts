import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { INPUT_TYPES } from '../../../encoding/prompts.js';
import { VECTOR_TYPES } from '../../../encoding/vector-types.js';
import { about, component, ignored, optional, textsOrTokens } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { lacking, without } from '../../../schemas/other-field.js';
import { OTHER_ENCODER_FIELDS } from '../../answering/schemas/other-fields.js';

/** Most inputs, as in OpenAI's API. */
const MAX_INPUTS = 2048;
const MAX_DOCUMENTS = 2048;

const model = optional(z.string(), 'A name that GET /v1/models lists. Not given: the first that can do it.');

const truncatePromptTokens = optional(
  z
    .int()
    .min(-1)
    .max(MAX_INT32)
    .refine((value) => value !== 0, 'expected -1 or at least 1'),
  'Cuts longer inputs at their end to so many tokens, special tokens included; -1: to what the model takes. Not given: a longer input is an error. Of a pair of texts the longer one is cut first.',
);

const commonFields = {
  model,
  truncate_prompt_tokens: truncatePromptTokens,
  user: ignored('A name for the end user. Accepted; it has no bearing on the answer.'),
};

const input = about(textsOrTokens(MAX_INPUTS, 'inputs'), {
  description: `The texts: one, or up to ${MAX_INPUTS}. Token ids are taken as they are: no special tokens are put around them.`,
  examples: ['The cat sits outside.'],
});

const dimensions = optional(
  z.int().min(1).max(MAX_INT32),
  'Values of each embedding, for models that were trained to be cut (Matryoshka); they are brought to length 1 again.',
);

const vectorType = z.enum(VECTOR_TYPES);

const OTHER_EMBEDDING_FIELDS = without(
  OTHER_ENCODER_FIELDS,
  'output_dimension output_dtype truncation truncate input_type',
);

export const embeddingRequestSchema = component(
  'EmbeddingRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      input,
      encoding_format: optional(z.enum(['float', 'base64']), {
        description: 'Numbers, or base64 of 32-bit floats in little-endian order.',
        default: 'float',
      }),
      dimensions,
      output_dimension: optional(dimensions, "Voyage's name of dimensions."),
      output_dtype: optional(vectorType, {
        description: `Voyage's type of the values: ${VECTOR_TYPES.join(', ')}. In base64 these are the bytes of that type.`,
        default: 'float',
      }),
      truncation: optional(z.boolean(), "Voyage's way to say that longer inputs are cut at their end."),
      truncate: optional(z.boolean(), 'The same in text-embeddings-inference.'),
      input_type: optional(
        z.enum([...INPUT_TYPES, 'passage']),
        "What the texts are for, as in Voyage's API: the model's prompt for it is put in front of them, if it has one.",
      ),
      prompt_name: optional(
        z.string().max(256),
        "Name of one of the model's prompts, which is put in front of the texts, as in text-embeddings-inference.",
      ),
    }),
    OTHER_EMBEDDING_FIELDS,
  ),
  "OpenAI's fields, vLLM's truncate_prompt_tokens, and Voyage's types of values.",
);

const textPart = z.object({ type: z.literal('text'), text: about(z.string(), 'The text of a part.') });

const COHERE_TYPES = [...VECTOR_TYPES, 'base64'] as const;

export type CohereType = (typeof COHERE_TYPES)[number];

export const cohereEmbedSchema = component(
  'CohereEmbedRequest',
  withOtherFields(
    z.object({
      model,
      texts: optional(z.array(z.string()).min(1).max(MAX_INPUTS), `Up to ${MAX_INPUTS} texts.`),
      inputs: optional(
        z
          .array(z.object({ content: about(z.array(textPart).min(1), 'The parts, joined by line breaks.') }))
          .min(1)
          .max(MAX_INPUTS),
        'In place of texts: inputs of parts, all of them text.',
      ),
      input_type: optional(
        z.enum(['search_document', 'search_query', 'classification', 'clustering']),
        'What the texts are for.',
      ),
      embedding_types: optional(z.array(z.enum(COHERE_TYPES)).min(1).max(COHERE_TYPES.length), {
        description: `Types of the values, each of which the answer has: ${COHERE_TYPES.join(', ')}.`,
        default: ['float'],
      }),
      output_dimension: dimensions,
      truncate: optional(z.enum(['NONE', 'START', 'END']), {
        description: 'Which side of a longer text is cut; NONE: it is an error.',
        default: 'END',
      }),
      max_tokens: optional(
        z.int().min(1).max(MAX_INT32),
        'Tokens of each text, after which it is cut. Not given: as many as the model takes.',
      ),
      priority: ignored(),
    }),
    {
      ...without(OTHER_ENCODER_FIELDS, 'embedding_types input_type output_dimension truncate'),
      images: lacking('embeddings of images', []),
    },
  ),
  "The fields of Cohere's API, version 2.",
);

export type CohereEmbedRequest = z.output<typeof cohereEmbedSchema>;

export type EmbeddingRequest = z.output<typeof embeddingRequestSchema>;

const document = z.union([z.string(), z.object({ text: about(z.string(), 'The text of the document.') })], {
  error: 'expected a string or an object with a text',
});

export const rerankRequestSchema = component(
  'RerankRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      query: about(z.string(), 'What the documents are to answer.'),
      documents: about(
        z.array(document).min(1).max(MAX_DOCUMENTS),
        `Up to ${MAX_DOCUMENTS} texts, as strings or as objects with a text.`,
      ),
      top_n: optional(z.int().min(1).max(MAX_INT32), 'Results that are given, the best first. Default: all.'),
      return_documents: optional(z.boolean(), {
        description: 'Gives the text of each document with its result.',
        default: true,
      }),
    }),
    OTHER_ENCODER_FIELDS,
  ),
  'The fields of Jina and Cohere.',
);

export type RerankRequest = z.output<typeof rerankRequestSchema>;

export const cohereRerankSchema = component(
  'CohereRerankRequest',
  withOtherFields(
    z.object({
      model,
      query: about(z.string(), 'What the documents are to answer.'),
      documents: about(
        z.array(document).min(1).max(MAX_DOCUMENTS),
        `Up to ${MAX_DOCUMENTS} texts, as strings or as objects with a text.`,
      ),
      top_n: optional(z.int().min(1).max(MAX_INT32), 'Results that are given, the best first. Default: all.'),
      max_tokens_per_doc: optional(
        z.int().min(1).max(MAX_INT32),
        'Tokens of a document and the query together; after them it is cut. Not given: as many as the model takes.',
      ),
      priority: ignored(),
    }),
    without(OTHER_ENCODER_FIELDS, 'max_tokens_per_doc'),
  ),
  "The fields of Cohere's API, version 2.",
);

export type CohereRerankRequest = z.output<typeof cohereRerankSchema>;

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
      text_1: texts('The first text of each pair; one text stands before each of text_2.'),
      text_2: texts('The second text of each pair.'),
    }),
    OTHER_ENCODER_FIELDS,
  ),
  "vLLM's fields.",
);

export type ScoreRequest = z.output<typeof scoreRequestSchema>;
