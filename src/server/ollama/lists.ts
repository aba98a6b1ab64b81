import { withAdapters } from '../../serving/adapters/served-adapters.js';
import { storedUnder } from './borrow.js';
import { memoryOf, servedFields, storedFields } from './details.js';
import { modelNotFound } from './errors.js';
import { servedUnder } from './names.js';
import { nameOf } from './pull.js';
import type { ShowBody } from './schemas.js';
import type { OllamaServices } from './services.js';
import { showAnswer, shownOfServed, shownOfStored } from './show.js';

/** Version of Ollama's API that is spoken here: clients ask whether it is new enough for what they want. */
export const OLLAMA_VERSION = '0.12.6';

/** When a model that stays loaded is unloaded, for clients that want a time. */
const NEVER = '2318-01-01T00:00:00Z';

/** The answer of GET /api/tags: all models that requests may name, loaded or not. */
export async function tags({ models, life }: OllamaServices): Promise<Response> {
  const stored = (await life?.store.list()) ?? [];
  const served = withAdapters(models.list()).map((model) => ({
    ...servedFields(model),
    modified_at: new Date(1000 * model.created).toISOString(),
  }));
  const ofFolder = stored.map((model) => storedFields(model, models.find(model.name)));
  const names = new Set(ofFolder.map(({ name }) => name));
  return Response.json({ models: [...served.filter(({ name }) => !names.has(name)), ...ofFolder] });
}

/** The answer of GET /api/ps: the models that are loaded. */
export async function ps({ models, life }: OllamaServices): Promise<Response> {
  const stored = new Map((await life?.store.list())?.map((model) => [model.name, model]));
  const loaded = models.list().map((model) => {
    const ofFolder = stored.get(model.id);
    const { modified_at: _, ...fields } =
      ofFolder === undefined ? { ...servedFields(model), modified_at: '' } : storedFields(ofFolder, model);
    const expiresMs = life?.models.expiresAt(model.id) ?? null;
    return {
      ...fields,
      size: memoryOf(model),
      expires_at: expiresMs === null ? NEVER : new Date(expiresMs).toISOString(),
      size_vram: 0,
      context_length: model.maxSeqLen,
    };
  });
  return Response.json({ models: loaded });
}

/** The answer of POST /api/show. @throws ApiError 404 */
export async function show({ models, life }: OllamaServices, request: ShowBody): Promise<Response> {
  const asked = nameOf(request);
  const served = servedUnder(models, asked);
  if (served !== undefined) return Response.json(showAnswer(shownOfServed(served)));
  const stored = await storedUnder(life, asked);
  if (stored === null) throw modelNotFound(asked);
  // In another case, the name may be that of a model which is served in place of the folder's.
  const meant = models.find(stored.name);
  if (meant !== undefined) return Response.json(showAnswer(shownOfServed(meant)));
  return Response.json(showAnswer(await shownOfStored(stored)));
}
