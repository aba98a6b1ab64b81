import type { JsonObject } from '../../json-parts.js';
import { listJson, type PageQuery, pageOf } from '../page.js';
import { historyOf } from './conversation.js';
import { itemJson } from './response-json.js';
import type { KeptItem, OwnResponses } from './response-store.js';

export interface ListOptions extends PageQuery {
  order: 'asc' | 'desc';
}

/** A page of a response's input items, with those of the conversation before it. @throws ApiError 404. */
export function inputItemList(store: OwnResponses, id: string, options: ListOptions): JsonObject {
  const { input, previous, before = [] } = store.activeResponse(id) ?? store.get(id);
  return itemPage([...historyOf(previous), ...before, ...input], `the response '${id}'`, options);
}

/** A page of items. @param owner what has them, for errors. @throws ApiError 404. */
export function itemPage(
  all: readonly KeptItem[],
  owner: string,
  { order, ...page }: ListOptions,
): JsonObject {
  return pageOf(order === 'desc' ? all.toReversed() : all, page, itemJson, owner);
}

export function itemListJson(data: readonly KeptItem[], hasMore: boolean): JsonObject {
  return listJson(data, hasMore, itemJson);
}
