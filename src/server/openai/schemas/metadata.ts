import * as z from 'zod';

/** Up to 16 short texts by names, which the server keeps for the client. */
export const metadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, 'expected at most 16 pairs');
