import * as z from 'zod';
import { about, component } from '../../../schemas/fields.js';
import { BATCH_STATUSES } from '../../batches/batch-object.js';
import { errors, jsonAnswer } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

const seconds = (text: string) => about(z.int(), `${text}, in seconds since 1970.`);

const file = component(
  'File',
  z.object({
    id: about(z.string(), { description: 'The id by which it is found.', examples: ['file-5f1c'] }),
    object: z.literal('file'),
    bytes: about(z.int(), 'Its length.'),
    created_at: seconds('When it was stored'),
    expires_at: seconds('When it is deleted'),
    filename: about(z.string(), 'The name that its client gave it.'),
    purpose: about(z.string(), 'What it is for; batch_output: answers of a batch.'),
    status: about(z.literal('processed'), 'A file that is there is whole.'),
    status_details: z.null(),
  }),
  'A stored file.',
);

const pageOf = (item: z.ZodType) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: about(z.boolean(), 'There are more after the last.'),
  });

const time = (text: string) => about(z.int().nullable(), text);

const batch = component(
  'Batch',
  z.object({
    id: about(z.string(), { description: 'The id by which it is found.', examples: ['batch_5f1c'] }),
    object: z.literal('batch'),
    endpoint: z.string(),
    errors: about(
      z
        .object({
          object: z.literal('list'),
          data: z.array(
            z.object({
              code: z.string(),
              message: z.string(),
              line: about(z.int().nullable(), 'Line of the input, from 1.'),
              param: z.string().nullable(),
            }),
          ),
        })
        .nullable(),
      'Why it failed.',
    ),
    input_file_id: z.string(),
    completion_window: z.string(),
    status: about(
      z.enum(BATCH_STATUSES),
      'failed: the input is at fault, and nothing was asked, or the answers could not be written.',
    ),
    output_file_id: about(z.string().nullable(), 'The answers, once it has ended.'),
    error_file_id: about(z.string().nullable(), 'Refusals, and requests that were not asked.'),
    created_at: seconds('When it was made'),
    expires_at: seconds('When it ends, whatever it has'),
    in_progress_at: time('When its input was validated.'),
    finalizing_at: time('When all was answered.'),
    completed_at: time('When its files were there.'),
    failed_at: time('When it failed.'),
    expired_at: time('When it expired.'),
    cancelling_at: time('When it was cancelled.'),
    cancelled_at: time('When its files were there.'),
    request_counts: about(
      z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
      'completed: answered with 200; failed: refused.',
    ),
    usage: z.object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    }),
    metadata: z.record(z.string(), z.string()).nullable(),
  }),
  'Requests of a file, and how far they are.',
);

export function uploadResponses(): Responses {
  return { 200: jsonAnswer('The file.', file), ...errors(400, 401, 413, 429, 503) };
}

export function fileListResponses(): Responses {
  return { 200: jsonAnswer('A page of files.', pageOf(file)), ...errors(400, 401, 404, 503) };
}

export function fileResponses(): Responses {
  return { 200: jsonAnswer('The file.', file), ...errors(401, 404, 503) };
}

export function contentResponses(): Responses {
  const content = { 'application/octet-stream': { schema: z.string() } };
  return { 200: { description: 'Its bytes.', content }, ...errors(401, 404, 429, 503) };
}

export function deletedFileResponses(): Responses {
  const answer = z.object({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) });
  return { 200: jsonAnswer('It is deleted.', answer), ...errors(400, 401, 404, 503) };
}

export function batchResponses(): Responses {
  return { 200: jsonAnswer('The batch.', batch), ...errors(400, 401, 404, 413, 429, 503) };
}

export function batchListResponses(): Responses {
  return { 200: jsonAnswer('A page of batches.', pageOf(batch)), ...errors(400, 401, 404, 503) };
}
