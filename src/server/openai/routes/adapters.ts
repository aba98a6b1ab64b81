import { requireAdmin } from '../../web/access/auth.js';
import { ApiError } from '../../web/errors.js';
import { loadAdapterSchema, unloadAdapterSchema } from '../schemas/adapters.js';
import { defineRoute, type OpenAiServices } from '../services.js';

const ALLOWED =
  'Only where the server was started with --allow-runtime-lora, and by admins where there are several API keys.';

export const loadAdapterRoute = defineRoute({
  method: 'post',
  path: '/v1/load_lora_adapter',
  tags: ['Models'],
  summary: 'Loads a LoRA adapter, by which a model then answers under its name',
  description: ALLOWED,
  body: loadAdapterSchema,
  examples: {
    'An adapter': { lora_name: 'sql', lora_path: 'sql-lora' },
    'In the place of one': { lora_name: 'sql', lora_path: 'sql-lora', load_inplace: true },
  },
  responses: async () => (await import('../answers/server.js')).adapterResponses(),
  handle: async ({ body, exchange }, context) => {
    const folder = folderOf(context);
    requireAdmin(exchange.terms.caller, context.apiKeys);
    const { loadAdapter } = await import('../adapters.js');
    return new Response(await loadAdapter(body, folder, context, exchange.signal));
  },
});

export const unloadAdapterRoute = defineRoute({
  method: 'post',
  path: '/v1/unload_lora_adapter',
  tags: ['Models'],
  summary: 'Unloads a LoRA adapter; its requests in flight go on',
  description: ALLOWED,
  body: unloadAdapterSchema,
  examples: { 'An adapter': { lora_name: 'sql' } },
  responses: async () => (await import('../answers/server.js')).adapterResponses(),
  handle: async ({ body, exchange }, context) => {
    folderOf(context);
    requireAdmin(exchange.terms.caller, context.apiKeys);
    const { unloadAdapter } = await import('../adapters.js');
    return new Response(unloadAdapter(body, context));
  },
});

/** @throws ApiError 403 where clients may load nothing */
function folderOf({ adapterFolder }: OpenAiServices): string {
  if (adapterFolder !== null) return adapterFolder;
  throw new ApiError(
    403,
    'LoRA adapters come and go only where the server was started with --allow-runtime-lora; a gateway has those of its workers (skein work --lora NAME=PATH).',
    {
      type: 'permission_error',
      code: 'runtime_lora_not_allowed',
    },
  );
}
