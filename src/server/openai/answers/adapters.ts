import * as z from 'zod';
import type { Responses } from '../../routes/route.js';
import { errors } from './shared.js';

export function adapterResponses(): Responses {
  const example = "Success: LoRA adapter 'sql' added successfully.";
  return {
    200: {
      description: 'It is done.',
      content: { 'text/plain': { schema: z.string(), example } },
    },
    ...errors(400, 401, 403, 404, 413, 429, 503),
  };
}
