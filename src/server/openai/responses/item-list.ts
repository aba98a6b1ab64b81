import { JsonList, JsonObject } from '../../json-parts.js';
import { ApiError } from '../errors.js';
import { historyOf } from './conversation.js';
import { itemJson } from './response-json.js';
import type { OwnResponses } from './response-store.js';

export interface ListOptions {
  order: 'asc' | 'desc';
  limit: number;
  /** Id of the item behind which the page begins. */
  after?: string | undefined;
}

/** A page of a response's input items, with those of the conversation before it. @throws ApiError 404. */
export function inputItemList(store: OwnResponses, id: string, { order, limit, after }: ListOptions) {
  const { input, previous } = store.activeResponse(id) ?? store.get(id);
  const items = [...historyOf(previous), ...input];
  if (order === 'desc') items.reverse();
  const start = after === undefined ? 0 : items.findIndex((item) => item.id === after) + 1;
  if (start === 0 && after !== undefined) {
    throw new ApiError(404, `'after' is '${after}', but the response '${id}' has no such item.`, {
      param: 'after',
    });
  }
  const data = items.slice(start, start + limit);
  return new JsonObject({
    object: 'list',
    data: JsonList.of(data, itemJson),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + limit < items.length,
  });
}
