import { KEEP_ALIVE_FORM, keepAliveMs } from '../../options/keep-alive.js';
import type { StoredModel } from '../../serving/on-demand/model-store.js';
import type { Lease } from '../../serving/on-demand/on-demand-models.js';
import type { ServedGenerator, ServedModel } from '../../serving/served-model.js';
import type { ModelLife } from '../answering/model-life.js';
import { ApiError } from '../web/errors.js';
import { modelNotFound, notCapable } from './errors.js';
import { servedUnder, spellingsOf } from './names.js';
import type { OllamaServices } from './services.js';

/** Milliseconds of a request's keep_alive; undefined: it has none. @throws ApiError */
export function keepAliveOf(value: string | number | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = keepAliveMs(value);
  if (ms !== null) return ms;
  throw new ApiError(400, `'keep_alive' is ${JSON.stringify(value)}; it must be ${KEEP_ALIVE_FORM}.`, {
    param: 'keep_alive',
    code: 'invalid_value',
  });
}

/** How a request uses a model. */
export interface Use {
  /** The request's keep_alive. */
  keepAlive: string | number | undefined;
  signal: AbortSignal;
}

/**
 * Runs work with the model of a name, which is loaded for it if it lies in the folder of models, and stays meanwhile; its engine
 * keeps it afterwards, as long as it answers.
 * @throws ApiError 404; ModelLoadError
 */
export async function withModel<T>(
  context: OllamaServices,
  asked: string,
  { keepAlive, signal }: Use,
  work: (model: ServedModel) => Promise<T>,
): Promise<T> {
  const keepAliveMs = keepAliveOf(keepAlive);
  const served = servedUnder(context.models, asked);
  const lease = await borrowed(context, served?.id ?? asked, { keepAliveMs, signal });
  if (lease === null && served === undefined) throw modelNotFound(asked);
  try {
    return await work(lease?.model ?? served!);
  } finally {
    lease?.release();
  }
}

async function borrowed(
  { life }: OllamaServices,
  name: string,
  use: { keepAliveMs: number | undefined; signal: AbortSignal },
): Promise<Lease | null> {
  if (life === null) return null;
  for (const spelling of spellingsOf(name)) {
    const lease = await life.models.borrow(spelling, use);
    if (lease !== null) return lease;
  }
  return null;
}

/** The request only asks for the model's end: it is released, and not loaded for that. */
export async function letGo({ models, life }: OllamaServices, asked: string): Promise<void> {
  const served = servedUnder(models, asked);
  if (served === undefined && (await storedUnder(life, asked)) === null) throw modelNotFound(asked);
  if (served !== undefined) life?.models.expire(served.id);
}

/** The model of the folder that has the name, loaded or not; null: none has. */
export async function storedUnder(life: ModelLife | null, asked: string): Promise<StoredModel | null> {
  if (life === null) return null;
  for (const spelling of spellingsOf(asked)) {
    const stored = await life.store.find(spelling);
    if (stored !== null) return stored;
  }
  return null;
}

/** @throws ApiError 400 where the model generates no text */
export function asGenerator(model: ServedModel, asked: string, what = 'generate'): ServedGenerator {
  if (model.kind === 'generator') return model;
  throw notCapable(asked, what);
}
