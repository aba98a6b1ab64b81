import { InvalidRequestError } from '../../generation/errors.js';
import { ApiError, toApiError } from './errors.js';

/** Names of fields, and what a request calls them. */
export type OtherNames = readonly (readonly [RegExp, string])[];

/** Runs what several routes share; errors of a request come in its own words. */
export async function inOtherWords<T>(names: OtherNames, run: () => Promise<T>): Promise<T> {
  const renamed = (text: string) => names.reduce((result, [name, own]) => result.replaceAll(name, own), text);
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof InvalidRequestError) && !(error instanceof ApiError)) throw error;
    const { status, type, code, headers, param, message } = toApiError(error);
    if (status !== 400 || param === null) throw error;
    throw new ApiError(400, renamed(message), { type, code, headers: { ...headers }, param: renamed(param) });
  }
}
