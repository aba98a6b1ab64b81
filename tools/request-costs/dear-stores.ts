import { DEFAULT_STORE_LIMITS, type KeptItem } from '../../src/server/openai/responses/response-store.js';
import { itemSize } from '../../src/server/openai/responses/stored-size.js';
import { MAX_ITEMS } from '../../src/server/openai/schemas/response-items.js';
import { JsonSize, MAX_JSON_VALUES } from '../../src/server/web/bodies/json-size.js';
import { DEFAULT_MAX_BODY_BYTES } from '../../src/server/web/bodies/read-json.js';
import { DEAR_ITEMS, type DearItem } from './dear-items.js';
import type { DearRequest } from './measure.js';

/** Sends a body to a path, and resolves with the id of what was stored. */
export type Store = (path: string, body: object) => Promise<string>;

/** A store full of one kind of state. */
export interface DearStore {
  name: string;
  /** Type of its items; 'response' where it holds responses. */
  type: string;
  /**
   * Fills the store. @returns small requests that take as much of it as they may, and more than that
   *
   * @param isFull false: one conversation is added, or one chain of responses
   */
  fill(store: Store, model: string, isFull: boolean): Promise<DearRequest[]>;
}

/** Routes that continue from what is stored, with what they need besides. */
const READERS: Readonly<Record<string, object>> = {
  '/v1/responses': { max_output_tokens: 4, truncation: 'auto', store: false },
  '/v1/responses/compact': {},
  '/v1/responses/input_tokens': {},
};
/** Share of a limit that is filled: the server adds some fields to what it stores. */
const FILLED = 0.9;
/** Share of the store that one conversation may take. */
const CONVERSATION_SHARE = 1 / 4;
const MAX_COMPACTIONS = 64;
const ID = 'dear';

/** Stores of each type of item, and of responses that continue each other. */
export function dearStores(): DearStore[] {
  const ofItems = Object.entries(DEAR_ITEMS).flatMap(([type, items]) =>
    items.map((item, index) => ({
      type,
      name: `stored ${type}${index === 0 ? '' : ` (${index + 1})`}`,
      fill: (store: Store, model: string, isFull: boolean) => fillWithItems(store, model, item, isFull),
    })),
  );
  const ofResponses = (what: string, ...turns: [numTurns: number, numItems: number, length: number]) => ({
    type: 'response',
    name: `stored responses with ${what}`,
    fill: (store: Store, model: string) => fillWithChain(store, model, ...turns),
  });
  return [...ofItems, ofResponses('long input', 3, 1, 5 * 2 ** 20), ofResponses('many items', 20, 200, 1)];
}

async function fillWithItems(
  store: Store,
  model: string,
  item: DearItem,
  isFull: boolean,
): Promise<DearRequest[]> {
  const { bytes, work, stored } = itemSize({ ...item, id: ID } as unknown as KeptItem);
  const { maxBytes } = DEFAULT_STORE_LIMITS;
  const json = Buffer.from(JSON.stringify(item));
  const sent = new JsonSize();
  sent.add(json);
  const mostOfType = item.type === 'compaction' ? MAX_COMPACTIONS : MAX_ITEMS;
  const numItems = fitting(
    [FILLED * mostOfType, 1],
    [FILLED * CONVERSATION_SHARE * maxBytes, stored],
    [FILLED * DEFAULT_MAX_BODY_BYTES, json.length],
    [FILLED * MAX_JSON_VALUES, sent.work],
  );
  const items = Array.from({ length: numItems - 1 }, () => item);
  let conversation = '';
  // One more than there is room for: the store is as full as it gets.
  const wantedBytes = isFull ? maxBytes : 1;
  for (let filled = 0; filled < wantedBytes; filled += numItems * stored)
    conversation = await store('/v1/conversations', { items: [...items, { ...item, id: ID }] });
  const taken = fitting(
    [mostOfType, 1],
    [FILLED * DEFAULT_MAX_BODY_BYTES, bytes],
    [FILLED * MAX_JSON_VALUES, work],
  );
  const references = (count: number) =>
    Array.from({ length: count }, () => ({ type: 'item_reference', id: ID }));
  const takenBytes = taken * bytes;
  const readers = Object.entries(READERS).flatMap(([path, fields]) => [
    post(path, `${taken} references`, { ...fields, model, input: references(taken) }, takenBytes),
    post(path, `${MAX_ITEMS} references`, { ...fields, model, input: references(MAX_ITEMS) }, takenBytes),
    ...(path.endsWith('/compact')
      ? []
      : [post(path, 'conversation', { ...fields, model, input: 'a', conversation }, numItems * bytes)]),
  ]);
  return [
    ...readers,
    post('/v1/conversations', `${taken} references`, { items: references(taken) }, takenBytes),
    post('/v1/conversations', `${MAX_ITEMS} references`, { items: references(MAX_ITEMS) }, takenBytes),
    get(`/v1/conversations/${conversation}/items?limit=100`, numItems * bytes),
  ];
}

/** @param numItems items of each turn. @param length characters of each */
async function fillWithChain(
  store: Store,
  model: string,
  numTurns: number,
  numItems: number,
  length: number,
): Promise<DearRequest[]> {
  const texts = [...Array.from({ length: numItems - 1 }, () => length), length, 1];
  const input = texts.map((count) => ({ role: 'user', content: 'x'.repeat(count) }));
  let previous: string | undefined;
  for (let turn = 0; turn < numTurns; turn++) {
    const fields = { model, input, truncation: 'auto', max_output_tokens: 2 };
    previous = await store('/v1/responses', { ...fields, previous_response_id: previous });
  }
  const takenBytes = numTurns * numItems * length;
  const readers = Object.entries(READERS).map(([path, fields]) =>
    post(
      path,
      'previous response',
      { ...fields, model, input: 'a', previous_response_id: previous },
      takenBytes,
    ),
  );
  return [...readers, get(`/v1/responses/${previous}/input_items?limit=100`, takenBytes)];
}

/** The greatest number of things of which none passes a limit. @param limits each with the amount of one thing */
function fitting(...limits: readonly (readonly [limit: number, one: number])[]): number {
  return Math.max(1, Math.min(...limits.map(([limit, one]) => Math.floor(limit / one))));
}

function post(path: string, what: string, fields: object, takenBytes: number): DearRequest {
  const body = Buffer.from(JSON.stringify(fields));
  return { name: `${path} ${what}`, path, body, takenBytes, isLong: false };
}

function get(path: string, takenBytes: number): DearRequest {
  return { name: path.replaceAll(/_[0-9a-f]{48}/g, ''), path, body: null, takenBytes, isLong: false };
}
