import * as z from 'zod';
import { errors } from '../../web/described-answers.js';
import type { Responses } from '../../web/route.js';

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
