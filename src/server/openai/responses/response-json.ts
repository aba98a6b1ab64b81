import { JsonList, JsonObject } from '../../web/bodies/json-parts.js';
import type { OutputItem, ResponseObject } from './response-object.js';
import type { StoredItem } from './response-store.js';

/** A response as JSON that is written in parts: it may hold the log-probs of thousands of tokens. */
export function responseJson(response: ResponseObject): JsonObject {
  return new JsonObject({
    ...response,
    tools: itemsJson(response.tools),
    output: JsonList.of(response.output, itemJson),
  });
}

/** An item of a conversation as JSON that is written in parts. */
export function itemJson(item: OutputItem | StoredItem): JsonObject {
  const fields = Object.entries(item).map(([name, value]) => [
    name,
    Array.isArray(value) ? JsonList.of(value, partJson) : value,
  ]);
  return new JsonObject(Object.fromEntries(fields));
}

/** A part of an item, or any value in a list that was not checked. */
export function partJson(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
  return 'logprobs' in part && Array.isArray(part.logprobs)
    ? new JsonObject({ ...part, logprobs: itemsJson(part.logprobs) })
    : new JsonObject(part);
}

/** A list of values that are short, or limited in size. */
export function itemsJson(items: readonly unknown[]): JsonList {
  return JsonList.of(items, (item) => item);
}
