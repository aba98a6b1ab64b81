import type { JsonObject } from '../../web/bodies/json-parts.js';
import { listJson, type PageQuery, pageItems } from '../../web/page.js';
import { historyOf } from './kept-record.js';
import type { OwnStore } from './own-store.js';
import { itemJson } from './response-json.js';
import type { KeptItem } from './response-store.js';

export interface ListOptions extends PageQuery {
  order: 'asc' | 'desc';
}

/** A page of a response's input items, with those of the conversation before it. @throws ApiError 404, 413, 429. */
export async function inputItemList(store: OwnStore, id: string, options: ListOptions): Promise<JsonObject> {
  const { responses } = store;
  const { input, previous, before = [] } = await responses.asked(id);
  return itemPage(store, [...historyOf(previous), ...before, ...input], `the response '${id}'`, options);
}

/** A page of the items of a conversation. @throws ApiError 404, 413, 429. */
export async function conversationItemList(
  store: OwnStore,
  id: string,
  options: ListOptions,
): Promise<JsonObject> {
  return itemPage(store, (await store.conversations.get(id)).items, `the conversation '${id}'`, options);
}

/** @param owner what has the items, for errors */
function itemPage(
  store: OwnStore,
  all: readonly KeptItem[],
  owner: string,
  { order, ...page }: ListOptions,
): JsonObject {
  const { data, hasMore } = pageItems(order === 'desc' ? all.toReversed() : all, page, owner);
  store.show(data);
  return itemListJson(data, hasMore);
}

export function itemListJson(data: readonly KeptItem[], hasMore: boolean): JsonObject {
  return listJson(data, hasMore, itemJson);
}
