import type { JsonObject } from '../../json-parts.js';
import { type PageQuery, pageOf } from '../page.js';
import { historyOf } from './conversation.js';
import { itemJson } from './response-json.js';
import type { OwnResponses } from './response-store.js';

export interface ListOptions extends PageQuery {
  order: 'asc' | 'desc';
}

/** A page of a response's input items, with those of the conversation before it. @throws ApiError 404. */
export function inputItemList(store: OwnResponses, id: string, { order, ...page }: ListOptions): JsonObject {
  const { input, previous } = store.activeResponse(id) ?? store.get(id);
  const items = [...historyOf(previous), ...input];
  if (order === 'desc') items.reverse();
  return pageOf(items, page, itemJson);
}
