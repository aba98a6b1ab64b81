import * as z from 'zod';
import { optional } from '../../../schemas/fields.js';
import { findGenerator } from '../../answering/find-model.js';
import { requireAdmin } from '../../web/access/auth.js';
import { defineRoute } from '../services.js';

export const cacheResetRoute = defineRoute({
  method: 'post',
  path: '/v1/cache/reset',
  tags: ['Server'],
  summary: 'Drops what later prompts could find in the KV cache',
  description:
    'What runs keeps its blocks and goes on; later prompts find nothing of it. Without a model, the caches of all. Where ' +
    'there are several API keys, only those of admins may do it, since the prompts of all keys take longer afterwards.',
  query: z.strictObject({ model: optional(z.string(), 'A name that GET /v1/models lists.') }),
  responses: async () => (await import('../answers/server.js')).cacheResetResponses(),
  handle: async ({ query: { model }, exchange }, context) => {
    requireAdmin(exchange.terms.caller, context.apiKeys);
    const generators =
      model === undefined
        ? context.models.list().filter((served) => served.kind === 'generator')
        : [findGenerator(context, model)];
    const models = await Promise.all(
      generators.map(async (served) => ({ model: served.id, dropped_blocks: await served.resetCache() })),
    );
    const total = models.reduce((sum, { dropped_blocks }) => sum + dropped_blocks, 0);
    return Response.json({ object: 'cache.reset', dropped_blocks: total, models });
  },
});
