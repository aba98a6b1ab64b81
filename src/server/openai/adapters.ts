import type * as z from 'zod';
import { textOf } from '../../../base/skein-error.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { OutsideError } from '../../../models/checkpoints/open-only-below.js';
import { withFlagNames } from '../../options/flag-names.js';
import { AdapterError, type AdapterErrorReason } from '../../serving/adapters/adapter-error.js';
import type { AdapterSet } from '../../serving/adapters/model-adapters.js';
import type { ModelDirectory } from '../../serving/model-directory.js';
import type { ModelRepository } from '../../serving/model-repository.js';
import type { AnsweringServices } from '../answering/services.js';
import { ApiError } from '../web/errors.js';
import { adapterInFolder, type FolderAdapter, outside } from './adapter-folder.js';
import type { loadAdapterSchema, unloadAdapterSchema } from './schemas/adapters.js';

/** What is served, by the routes of texts and by those of tensors. */
interface Served extends Pick<AnsweringServices, 'models'> {
  platform: { repository: Pick<ModelRepository, 'holds'> } | null;
}

/** A model that takes adapters. */
interface Base {
  id: string;
  adapters: AdapterSet;
}

/** Loads an adapter for the clients of a model. @param folder that of --lora-dir @throws ApiError 400, 403, 404 */
export async function loadAdapter(
  {
    lora_name: name,
    lora_path: path,
    load_inplace: replace = false,
    base_model_name: baseName = '',
  }: z.output<typeof loadAdapterSchema>,
  folder: string,
  context: Served,
  signal: AbortSignal,
): Promise<string> {
  const base = baseOf(baseName, replace ? name : null, context.models);
  const adapter = await adapterInFolder(folder, path);
  // Nothing is awaited from here to the load: no other request can take the name.
  checkName(name, replace ? base : null, context);
  try {
    await base.load(name, adapter.path, { replace, signal, within: adapter.root });
  } catch (error) {
    throw error instanceof OutsideError ? outside(path) : asApiError(error, adapter);
  }
  return `Success: LoRA adapter '${name}' added successfully.`;
}

/**
 * @param own the model whose adapter of this name may be replaced; null: none may
 * @throws ApiError 400 where the name is taken: by an adapter in vLLM's words, for which its controllers look
 */
function checkName(name: string, own: AdapterSet | null, { models, platform }: Served): void {
  const having = basesIn(models).find(({ adapters }) => adapters.has(name));
  const taken = { param: 'lora_name', code: 'lora_name_taken' };
  if (having === undefined) {
    if (models.find(name) === undefined && platform?.repository.holds(name) !== true) return;
    throw new ApiError(400, `'lora_name' is '${name}', and there is a model of that name already.`, taken);
  }
  const { id, adapters } = having;
  if (adapters === own) return;
  if (own !== null) {
    const whose = `an adapter of the model '${id}', which load_inplace cannot replace by one of another model`;
    throw new ApiError(400, `'lora_name' is '${name}', ${whose}.`, taken);
  }
  const told =
    adapters.find(name) === undefined
      ? 'is being loaded already.'
      : "has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.";
  throw new ApiError(400, `The lora adapter '${name}' ${told}`, { ...taken, type: 'InvalidUserInput' });
}

/** Unloads an adapter; its requests in flight continue. @throws ApiError 404, in vLLM's words */
export function unloadAdapter(
  { lora_name: name }: z.output<typeof unloadAdapterSchema>,
  { models }: Pick<AnsweringServices, 'models'>,
): string {
  const base = basesIn(models).find(({ adapters }) => adapters.find(name) !== undefined);
  if (base === undefined) {
    throw new ApiError(404, `The lora adapter '${name}' cannot be found.`, {
      type: 'NotFoundError',
      param: 'lora_name',
      code: 'lora_not_found',
    });
  }
  base.adapters.unload(name);
  return `Success: LoRA adapter '${name}' removed successfully.`;
}

function basesIn(models: ModelDirectory): Base[] {
  return models.list().flatMap((model) => {
    const adapters = model.kind === 'generator' ? model.adapters : null;
    return adapters == null ? [] : [{ id: model.id, adapters }];
  });
}

/**
 * The model whose adapter it is: the one that is named, the only one that takes any, or the one that has the adapter to be replaced.
 * vLLM serves one model and does not look at the name, so controllers send names from elsewhere.
 *
 * @param asked '': nothing @param replaced name of an adapter that may be there; null: none is replaced @throws ApiError 400, 404
 */
function baseOf(asked: string, replaced: string | null, models: ModelDirectory): AdapterSet {
  const named = asked === '' ? undefined : models.find(asked);
  const taking = basesIn(models);
  const known = taking.filter(({ id }) => named === undefined || id === named.id);
  const [only, other] = known;
  if (only === undefined) {
    const what = named === undefined ? 'No model of this server takes' : `The model '${asked}' takes no`;
    const param = named === undefined ? null : 'base_model_name';
    throw new ApiError(400, `${what} LoRA adapters.`, { param, code: 'model_not_supported' });
  }
  if (other === undefined) return only.adapters;
  const names = known.slice(0, 20).map(({ id }) => `'${id}'`);
  if (asked !== '') {
    throw new ApiError(404, `The model '${asked}' does not exist; adapters may be of ${names.join(', ')}.`, {
      param: 'base_model_name',
      code: 'model_not_found',
    });
  }
  const having = known.find(({ adapters }) => replaced !== null && adapters.has(replaced));
  if (having !== undefined) return having.adapters;
  throw new ApiError(400, `'base_model_name' is missing: adapters may be of ${names.join(', ')}.`, {
    param: 'base_model_name',
    code: 'missing_required_parameter',
  });
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
    const code = reason === 'taken' ? 'lora_name_taken' : `lora_${reason}`;
    return new ApiError(400, text(), { param: PARAMS[reason], code });
  }
  if (error instanceof CheckpointError) {
    return new ApiError(400, text(), { param: 'lora_path', code: 'invalid_lora' });
  }
  return error;
}
