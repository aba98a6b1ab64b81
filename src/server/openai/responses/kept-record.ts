import { StoreError } from '../../../../base/store-errors.js';
import { type ConversationFields, StoredConversation } from './conversation-store.js';
import type { ResponseObject } from './response-object.js';
import type { KeptItem, StoredItem, StoredResponse } from './response-store.js';
import { turnOf } from './stored-size.js';

/** A response as a record has it: by itself, with all items of those that it continues. */
interface ResponseRecord {
  kind: 'response';
  response: ResponseObject;
  input: readonly StoredItem[];
  history: readonly KeptItem[];
  before: readonly KeptItem[] | null;
  events: readonly string[] | null;
}

type ConversationRecord = { kind: 'conversation' } & ConversationFields;

/** All items of a response and of those that it continues, the oldest first. */
export function historyOf(last: StoredResponse | null): KeptItem[] {
  const turns: StoredResponse[] = [];
  for (let link = last; link !== null; link = link.previous) turns.push(link);
  return turns.reverse().flatMap(turnOf);
}

/** What stands for the responses before one of which only the items are known; null: there are none. */
export function asPrevious(history: readonly KeptItem[]): StoredResponse | null {
  if (history.length === 0) return null;
  const response = { id: '', output: [] } as unknown as ResponseObject;
  return { response, input: history as readonly StoredItem[], previous: null };
}

export function writtenResponse({ response, input, previous, before, events }: StoredResponse): string {
  const record: ResponseRecord = {
    kind: 'response',
    response,
    input,
    history: historyOf(previous),
    before: before ?? null,
    events: events ?? null,
  };
  return JSON.stringify(record);
}

export function writtenConversation({ fields }: StoredConversation): string {
  const record: ConversationRecord = { kind: 'conversation', ...fields };
  return JSON.stringify(record);
}

/** A response, or a conversation, of the text of its record. @throws StoreError for a record that is none */
export function readKept(id: string, text: string): StoredResponse | StoredConversation {
  try {
    const record = JSON.parse(text) as ResponseRecord | ConversationRecord;
    if (record.kind === 'response') {
      const { response, input, history, before, events } = record;
      if (response.id !== id || typeof response.status !== 'string') throw new Error('it has another id');
      for (const items of [response.output, input, history, before ?? []]) checkItems(items);
      if (events !== null && !events.every((event) => typeof event === 'string'))
        throw new Error('its events are none');
      const previous = asPrevious(history);
      return { response, input, previous, before: before ?? undefined, events: events ?? undefined };
    }
    const { createdAt, metadata, items, turn } = record;
    if (record.kind !== 'conversation' || record.id !== id) throw new Error('it has another id');
    if (!Number.isSafeInteger(createdAt) || typeof metadata !== 'object') throw new Error('it has no time');
    checkItems(items);
    return new StoredConversation({ id, createdAt, metadata, items, turn: turn ?? null });
  } catch (error) {
    throw new StoreError('foreign', `The record of ${id} cannot be read: ${(error as Error).message}.`);
  }
}

function checkItems(items: readonly KeptItem[]): void {
  for (const item of items) {
    if (typeof item.id !== 'string' || typeof item.type !== 'string')
      throw new Error('it has an item that is none');
  }
}
