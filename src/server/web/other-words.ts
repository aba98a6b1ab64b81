import { ChatTemplateError } from '../../../models/chat-template.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { ApiError, toApiError } from './errors.js';
import type { CallField } from './field-words.js';

/** Runs code shared by several routes, and words errors of the request with this route's names. */
export async function inOtherWords<T>(callField: CallField, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const isOfRequest =
      error instanceof InvalidRequestError || error instanceof ApiError || error instanceof ChatTemplateError;
    throw isOfRequest ? toApiError(error, callField) : error;
  }
}
