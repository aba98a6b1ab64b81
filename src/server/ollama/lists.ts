import { withAdapters } from '../../serving/adapters/served-adapters.js';
import { ApiError } from '../openai/errors.js';
import type { RouteContext } from '../openai/route-context.js';
import { findServed } from './borrow.js';
import { servedFields } from './details.js';
import type { ShowBody } from './schemas.js';
import { showAnswer, shownOfServed } from './show.js';

/** Version of Ollama's API that is spoken here: clients ask whether it is new enough for what they want. */
export const OLLAMA_VERSION = '0.12.6';

/** When a model that stays loaded is unloaded, for clients that want a time. */
const NEVER = '2318-01-01T00:00:00Z';

/** The answer of GET /api/tags: all models that requests may name. */
export function tags({ models }: RouteContext): Response {
  const served = withAdapters(models.list()).map((model) => ({
    ...servedFields(model),
    modified_at: new Date(1000 * model.created).toISOString(),
  }));
  return Response.json({ models: served });
}

/** The answer of GET /api/ps: the models that are loaded. */
export function ps({ models }: RouteContext): Response {
  const loaded = models.list().map((model) => ({
    ...servedFields(model),
    size: model.memoryBytes ?? servedFields(model).size,
    expires_at: NEVER,
    size_vram: 0,
    context_length: model.maxSeqLen,
  }));
  return Response.json({ models: loaded });
}

/** The answer of POST /api/show. @throws ApiError 404 */
export function show(context: RouteContext, { model, name = model }: ShowBody): Response {
  const asked = model ?? name;
  if (asked === undefined) {
    throw new ApiError(400, "The field 'model' is required.", {
      param: 'model',
      code: 'missing_required_parameter',
    });
  }
  return Response.json(showAnswer(shownOfServed(findServed(context, asked))));
}
