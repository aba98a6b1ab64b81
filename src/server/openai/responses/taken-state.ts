import { MAX_JSON_VALUES } from '../../web/bodies/json-size.js';
import { ApiError } from '../../web/errors.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import { MAX_ITEMS } from '../schemas/response-items.js';
import type { TakenSize } from './stored-size.js';

/**
 * What one request takes out of the store. A reference of 50 bytes may stand for megabytes, and a thousand references for
 * gigabytes: the sum meets the limits of a body, and counts as memory of the request, before anything of it is read.
 */
export class TakenState {
  readonly #memory: RequestMemory;
  readonly #maxBytes: number;
  #items = 0;
  #bytes = 0;
  #work = 0;

  /** @param maxBytes bytes of the longest body */
  constructor(memory: RequestMemory, maxBytes: number) {
    this.#memory = memory;
    this.#maxBytes = maxBytes;
  }

  /** Counts what is about to be read. @param param field that asks for it. @throws ApiError 400, 413, 429. */
  take({ items, bytes, work, memory }: TakenSize, param: string): void {
    this.#items += items;
    this.#bytes += bytes;
    this.#work += work;
    if (this.#items > MAX_ITEMS)
      throw tooMuch(400, param, `has ${this.#items} items, at most ${MAX_ITEMS} are taken`);
    if (this.#bytes > this.#maxBytes)
      throw tooMuch(413, param, `has ${this.#bytes} bytes, at most ${this.#maxBytes} are taken`);
    if (this.#work > MAX_JSON_VALUES)
      throw tooMuch(400, param, `holds more than ${MAX_JSON_VALUES} values, which is the limit`);
    this.#memory.addTaken(memory);
  }

  /** Counts what is only written into the answer. @throws ApiError 413, 429. */
  hold(bytes: number): void {
    this.#memory.addTaken(bytes);
  }
}

function tooMuch(status: 400 | 413, param: string, found: string): ApiError {
  const message = `What this request takes from stored responses and conversations ${found}, as of a body.`;
  return new ApiError(status, message, { param, code: 'conversation_too_long' });
}
