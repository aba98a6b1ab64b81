import type { ObserveRequest } from '../request-observer.js';
import type { ServedModel } from '../served-model.js';
import { ApiError } from './errors.js';
import type { EventStreamOptions } from './event-stream.js';

/** What the routes of the API work with. */
export interface RouteContext {
  models: readonly ServedModel[];
  observe: ObserveRequest;
  eventStream: EventStreamOptions;
}

/** @throws ApiError 404 that names the models there are. */
export function findModel(context: RouteContext, id: string | undefined): ServedModel {
  const model = id === undefined ? context.models[0] : context.models.find((served) => served.id === id);
  if (model !== undefined) return model;
  const names = context.models.map((served) => `'${served.id}'`).join(', ');
  throw new ApiError(404, `The model '${id}' does not exist. This server serves ${names}.`, {
    param: 'model',
    code: 'model_not_found',
  });
}
