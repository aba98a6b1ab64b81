import { JsonList, JsonObject } from './bodies/json-parts.js';
import { ApiError } from './errors.js';

/** What a client asks of a list. */
export interface PageQuery {
  limit: number;
  /** Id of the item after which the page begins. */
  after?: string | undefined;
}

/** A page of a list, as OpenAI's clients turn them. @throws ApiError 404 where `after` is not in the list. */
export function pageOf<Item extends { id: string }>(
  items: readonly Item[],
  query: PageQuery,
  itemJson: (item: Item) => object,
): JsonObject {
  const { data, hasMore } = pageItems(items, query, 'the list');
  return listJson(data, hasMore, itemJson);
}

/**
 * The items of a page.
 * @param owner what has the list, for errors.
 * @throws ApiError 404 where `after` is not in the list.
 */
export function pageItems<Item extends { id: string }>(
  items: readonly Item[],
  { limit, after }: PageQuery,
  owner: string,
): { data: Item[]; hasMore: boolean } {
  const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (start === 0 && after !== undefined) {
    throw new ApiError(404, `'after' is '${after}', but ${owner} has no such item.`, { param: 'after' });
  }
  return { data: items.slice(start, start + limit), hasMore: start + limit < items.length };
}

export function listJson<Item extends { id: string }>(
  data: readonly Item[],
  hasMore: boolean,
  itemJson: (item: Item) => object,
): JsonObject {
  return new JsonObject({
    object: 'list',
    data: JsonList.of(data, itemJson),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  });
}
