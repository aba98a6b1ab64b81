import * as z from 'zod';
import { about } from '../../../schemas/fields.js';
import { jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';
import { refusals } from './encoders.js';

export function cohereEmbedResponses(): Responses {
  const rows = (values: z.ZodType) => z.array(values).optional();
  const numbers = rows(z.array(z.number()));
  const answer = z.object({
    id: z.string(),
    embeddings: about(
      z.object({
        float: numbers,
        int8: numbers,
        uint8: numbers,
        binary: numbers,
        ubinary: numbers,
        base64: rows(z.string()),
      }),
      'The embeddings in the order of the texts, in each type that was asked for.',
    ),
    texts: z.array(z.string()),
    meta: z.object({
      api_version: z.object({ version: z.literal('2') }),
      billed_units: z.object({ input_tokens: z.int() }),
    }),
    response_type: z.literal('embeddings_by_type'),
  });
  return { 200: jsonAnswer('The embeddings.', answer), ...refusals() };
}

export function cohereRerankResponses(): Responses {
  const answer = z.object({
    id: z.string(),
    results: z.array(
      z.object({
        index: about(z.int(), 'Which of the documents.'),
        document: about(z.object({ text: z.string() }).optional(), 'If `return_documents` is true.'),
        relevance_score: about(z.number(), "A cross-encoder's score, else the cosine of two embeddings."),
      }),
    ),
    meta: z.object({
      api_version: z.object({ version: z.literal('2') }),
      billed_units: z.object({ search_units: z.int() }),
      tokens: z.object({ input_tokens: z.int() }),
    }),
  });
  return { 200: jsonAnswer('The ranking.', answer), ...refusals() };
}
