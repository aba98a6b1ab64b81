import type * as z from 'zod';
import { textOf } from '../../../base/skein-error.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { OutsideError } from '../../../models/checkpoints/open-only-below.js';
import { withFlagNames } from '../../options/flag-names.js';
import { AdapterError, type AdapterErrorReason } from '../../serving/adapters/adapter-error.js';
import type { ModelAdapters } from '../../serving/adapters/model-adapters.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { adapterInFolder, type FolderAdapter, outside } from './adapter-folder.js';
import { ApiError } from './errors.js';
import { findGenerator, type RouteContext } from './route-context.js';
import type { loadAdapterSchema, unloadAdapterSchema } from './schemas/adapters.js';

type Models = Pick<RouteContext, 'models'>;

/** Loads an adapter for the clients of a model. @param folder that of --lora-dir @throws ApiError 400, 403, 404 */
export async function loadAdapter(
  {
    lora_name: name,
    lora_path: path,
    load_inplace: replace = false,
    base_model_name,
  }: z.output<typeof loadAdapterSchema>,
  folder: string,
  context: Models,
  signal: AbortSignal,
): Promise<string> {
  const base = baseOf(base_model_name, replace ? name : null, context);
  const adapter = await adapterInFolder(folder, path);
  // From here to the load nothing is awaited: nobody else can take the name.
  checkName(name, replace ? base : null, context);
  try {
    await base.load(name, adapter.path, { replace, signal, within: adapter.root });
  } catch (error) {
    throw error instanceof OutsideError ? outside(path) : asApiError(error, adapter);
  }
  return `Success: LoRA adapter '${name}' added successfully.`;
}

/** @param own the model whose adapter of this name may be replaced; null: none may @throws ApiError 400 where the name is taken */
function checkName(name: string, own: ModelAdapters | null, { models }: Models): void {
  const isOwn = own?.find(name) !== undefined;
  const others = models.list().some((model) => {
    return model.kind === 'generator' && model.adapters !== own && model.adapters?.has(name);
  });
  if (!others && (isOwn || models.find(name) === undefined)) return;
  throw new ApiError(400, `'lora_name' is '${name}', and there is a model of that name already.`, {
    param: 'lora_name',
    code: 'lora_name_taken',
  });
}

/** Unloads an adapter; its requests in flight go on. @throws ApiError 404 */
export function unloadAdapter(
  { lora_name: name }: z.output<typeof unloadAdapterSchema>,
  { models }: Models,
): string {
  const base = models.list().flatMap((model) => {
    return model.kind === 'generator' && model.adapters?.find(name) ? [model.adapters] : [];
  })[0];
  if (base === undefined) {
    throw new ApiError(404, `The LoRA adapter '${name}' cannot be found.`, {
      param: 'lora_name',
      code: 'lora_not_found',
    });
  }
  base.unload(name);
  return `Success: LoRA adapter '${name}' removed successfully.`;
}

/**
 * The model whose adapter it is: the one that is named, the one that has the adapter to be replaced, or the only one that takes any.
 *
 * @param replaced name of an adapter that may be there; null: none is replaced @throws ApiError 400, 404
 */
function baseOf(name: string | undefined, replaced: string | null, context: Models): ModelAdapters {
  const models =
    name === undefined
      ? context.models.list().filter((model) => model.kind === 'generator')
      : [named(name, context)];
  const taking = models.filter(({ adapters }) => adapters != null);
  const having = taking.filter(({ adapters }) => replaced !== null && adapters!.has(replaced));
  const [base, other] = having.length > 0 ? having : taking;
  if (base === undefined) {
    const what = name === undefined ? 'No model of this server takes' : `The model '${name}' takes no`;
    throw new ApiError(400, `${what} LoRA adapters.`, {
      param: name === undefined ? null : 'base_model_name',
      code: 'model_not_supported',
    });
  }
  if (other === undefined) return base.adapters!;
  const names = taking.slice(0, 20).map(({ id }) => `'${id}'`);
  throw new ApiError(400, `'base_model_name' is missing: adapters may be of ${names.join(', ')}.`, {
    param: 'base_model_name',
    code: 'missing_required_parameter',
  });
}

/** @throws ApiError as findGenerator, of the field base_model_name */
function named(name: string, context: Models): ServedGenerator {
  try {
    return findGenerator(context, name);
  } catch (error) {
    throw error instanceof ApiError ? error.inFields(() => 'base_model_name') : error;
  }
}

const PARAMS: Readonly<Record<AdapterErrorReason, string | null>> = {
  unknown: 'lora_name',
  taken: 'lora_name',
  name: 'lora_name',
  full: null,
  none: null,
};

function asApiError(error: unknown, { inFolder }: FolderAdapter): unknown {
  const text = () => inFolder(withFlagNames(textOf(error)));
  if (error instanceof AdapterError) {
    const { reason } = error;
    return new ApiError(400, text(), { param: PARAMS[reason], code: `lora_${reason}` });
  }
  if (error instanceof CheckpointError) {
    return new ApiError(400, text(), { param: 'lora_path', code: 'invalid_lora' });
  }
  return error;
}
