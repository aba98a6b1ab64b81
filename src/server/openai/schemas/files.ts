import * as z from 'zod';
import { BATCH_URLS } from '../../../batch/batch-line.js';
import { about, component, optional } from '../../../schemas/fields.js';
import { windowSeconds } from '../../batches/batch-object.js';
import { MAX_LIFE_S, MIN_LIFE_S } from '../../files/file-limits.js';
import { UPLOAD_PURPOSES } from '../../files/stored-file.js';
import { metadata } from '../../web/metadata.js';

const life = <Seconds extends z.ZodType<number>>(seconds: Seconds) =>
  z.object({
    anchor: about(z.literal('created_at'), 'The time from which the seconds count.'),
    seconds: about(seconds, `Seconds from its creation on, ${MIN_LIFE_S} to ${MAX_LIFE_S} (30 days).`),
  });

const seconds = z.int().min(MIN_LIFE_S).max(MAX_LIFE_S);
/** A form's values are texts. */
const secondsAsText = z.coerce.number().pipe(seconds);

/** A part of a form that is a file; what it holds is read by the route. */
const filePart = z.unknown().optional();
z.globalRegistry.add(filePart, {
  type: 'string',
  contentMediaType: 'application/octet-stream',
  description: 'The file, in a part with a file name.',
} as z.GlobalMeta);

export const fileUploadSchema = component(
  'FileUpload',
  z.object({
    file: filePart,
    purpose: about(
      z.enum(UPLOAD_PURPOSES),
      'What it is for. Batches read files for `batch`; those for `vision` and `user_data` may be pictures of requests; others are kept, and nothing here reads them.',
    ),
    expires_after: optional(life(secondsAsText), 'When it is deleted. Not given: after 30 days.'),
  }),
  'A file, and what it is for.',
);

export const batchRequestSchema = component(
  'BatchRequest',
  z.object({
    input_file_id: about(
      z.string(),
      'A file for `batch`, with a JSON object in each line: custom_id, method (POST), url (the endpoint) and body.',
    ),
    endpoint: about(z.enum(BATCH_URLS), 'The route that all its requests ask.'),
    completion_window: about(
      z.string().refine((text) => windowSeconds(text) !== null, {
        error: 'expected a time such as 24h, in m, h or d, of 14 days at most',
      }),
      {
        description: 'The time for all answers, such as 24h; after it the batch ends with what it has.',
        examples: ['24h'],
      },
    ),
    metadata: optional(metadata, 'Up to 16 texts by names, which come back with the batch.'),
    output_expires_after: optional(life(seconds), 'When the files with the answers are deleted.'),
  }),
  'Requests to be answered while others are served.',
);
