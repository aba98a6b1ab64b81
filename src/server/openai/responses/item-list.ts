import { JsonList, JsonObject } from '../../json-parts.js';
import { ApiError } from '../errors.js';
import { historyOf } from './conversation.js';
import { itemJson } from './response-json.js';
import type { KeptItem, OwnResponses } from './response-store.js';

export interface ListOptions {
  order: 'asc' | 'desc';
  limit: number;
  /** Id of the item behind which the page begins. */
  after?: string | undefined;
}

/** A page of a response's input items, with those of the conversation before it. @throws ApiError 404. */
export function inputItemList(store: OwnResponses, id: string, options: ListOptions) {
  const { input, previous, before = [] } = store.activeResponse(id) ?? store.get(id);
  return itemPage([...historyOf(previous), ...before, ...input], `the response '${id}'`, options);
}

/** A page of items. @param owner what has them, for errors. @throws ApiError 404. */
export function itemPage(all: readonly KeptItem[], owner: string, { order, limit, after }: ListOptions) {
  const items = order === 'desc' ? all.toReversed() : all;
  const start = after === undefined ? 0 : items.findIndex((item) => item.id === after) + 1;
  if (start === 0 && after !== undefined) {
    throw new ApiError(404, `'after' is '${after}', but ${owner} has no such item.`, { param: 'after' });
  }
  return itemListJson(items.slice(start, start + limit), start + limit < items.length);
}

export function itemListJson(data: readonly KeptItem[], has_more: boolean): JsonObject {
  return new JsonObject({
    object: 'list',
    data: JsonList.of(data, itemJson),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more,
  });
}
