import * as z from 'zod';
import { BATCH_URLS } from '../../batch/batch-line.js';
import { FILE_ID } from '../files/stored-file.js';
import { BATCH_STATUSES, BATCH_TIMES, type Batch } from './batch-object.js';

const count = z.int().nonnegative();
const seconds = z.int().nonnegative();
const fileId = z.string().regex(FILE_ID);

/**
 * A record as stored on disk. Clients cannot write there, but its contents become paths, routes and answers:
 * ids name files of the store alone, and endpoints are those that a client may ask for.
 */
const record: z.ZodType<Batch> = z.object({
  id: z.string().regex(/^batch_[0-9a-f]{32}$/),
  owner: z.string(),
  endpoint: z.enum(BATCH_URLS),
  inputFileId: fileId,
  completionWindow: z.string(),
  metadata: z.record(z.string(), z.string()).nullable(),
  outputLifeSeconds: seconds.nullable(),
  outputId: fileId,
  errorsId: fileId,
  status: z.enum(BATCH_STATUSES),
  createdAt: seconds,
  expiresAt: seconds,
  times: z.partialRecord(z.enum(BATCH_TIMES), seconds),
  faults: z.array(
    z.object({
      code: z.string(),
      message: z.string(),
      line: count.nullable(),
      param: z.string().nullable(),
    }),
  ),
  counts: z.object({
    total: count,
    completed: count,
    failed: count,
    usage: z.object({
      promptTokens: count,
      cachedTokens: count,
      completionTokens: count,
      reasoningTokens: count,
    }),
  }),
  hasOutput: z.boolean(),
  hasErrors: z.boolean(),
  holder: z.string().optional(),
});

/**
 * The batch of a record's text; null where it is not one of this server's.
 *
 * @param id by the name of the record's file
 */
export function readBatch(text: string, id: string): Batch | null {
  try {
    const { success, data } = record.safeParse(JSON.parse(text));
    const isWhole =
      success && data.id === id && new Set([data.inputFileId, data.outputId, data.errorsId]).size === 3;
    return isWhole ? data : null;
  } catch {
    return null;
  }
}
