import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { VECTOR_TYPES } from '../../../encoding/vector-types.js';
import { about, component, ignored, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import {
  OTHER_COHERE_EMBED_FIELDS,
  OTHER_COHERE_RERANK_FIELDS,
} from '../../answering/schemas/other-fields.js';
import { dimensions, MAX_INPUTS, model } from './encoder-fields.js';
import { rankingFields } from './rankings.js';

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
    OTHER_COHERE_EMBED_FIELDS,
  ),
  "The fields of Cohere's API, version 2.",
);

export type CohereEmbedRequest = z.output<typeof cohereEmbedSchema>;

export const cohereRerankSchema = component(
  'CohereRerankRequest',
  withOtherFields(
    z.object({
      model,
      ...rankingFields,
      max_tokens_per_doc: optional(
        z.int().min(1).max(MAX_INT32),
        'Tokens of a document and the query together; after them it is cut. Not given: as many as the model takes.',
      ),
      return_documents: optional(z.boolean(), {
        description: 'Gives the text of each document with its result.',
        default: false,
      }),
      priority: ignored(),
    }),
    OTHER_COHERE_RERANK_FIELDS,
  ),
  "The fields of Cohere's API, version 2.",
);

export type CohereRerankRequest = z.output<typeof cohereRerankSchema>;
