import { KEEP_ALIVE_FORM, keepAliveMs } from '../../serving/on-demand/keep-alive.js';
import type { ServedGenerator, ServedModel } from '../../serving/served-model.js';
import { ApiError } from '../openai/errors.js';
import type { RouteContext } from '../openai/route-context.js';
import { modelNotFound, notCapable } from './errors.js';
import { servedUnder } from './names.js';

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

/** The served model of a name. @throws ApiError 404 */
export function findServed(context: Pick<RouteContext, 'models'>, name: string): ServedModel {
  const model = servedUnder(context.models, name);
  if (model === undefined) throw modelNotFound(name);
  return model;
}

/** @throws ApiError 400 where the model generates no text */
export function asGenerator(model: ServedModel, asked: string, what = 'generate'): ServedGenerator {
  if (model.kind === 'generator') return model;
  throw notCapable(asked, what);
}
