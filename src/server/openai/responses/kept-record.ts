import { setImmediate as nextTurn } from 'node:timers/promises';
import { StoreError } from '../../../../base/store-errors.js';
import { type ConversationFields, StoredConversation } from './conversation-store.js';
import type { ResponseObject } from './response-object.js';
import type { KeptItem, StoredItem, StoredResponse } from './response-store.js';
import { turnOf } from './stored-size.js';

/**
 * A record is a line of JSON with what is short, and a line for each item or event, so that a long one is
 * written and read in turns. A response is complete, with all items of those that it continues.
 */
type Head =
  | {
      kind: 'response';
      response: ResponseObject;
      lists: Record<'input' | 'history' | 'before' | 'events', number | null>;
    }
  | ({ kind: 'conversation'; lists: { items: number } } & Omit<ConversationFields, 'items'>);

/** Characters after which others get their turn. */
const TURN = 2 ** 18;

/** All items of a response and of those that it continues, the oldest first. */
export function historyOf(last: StoredResponse | null): KeptItem[] {
  const turns: StoredResponse[] = [];
  for (let link = last; link !== null; link = link.previous) turns.push(link);
  return turns.reverse().flatMap(turnOf);
}

/** Replaces the responses before one of which only the items are known; null: there are none. */
export function asPrevious(history: readonly KeptItem[]): StoredResponse | null {
  if (history.length === 0) return null;
  const response = { id: '', output: [] } as unknown as ResponseObject;
  return { response, input: history as readonly StoredItem[], previous: null };
}

export function writtenResponse({
  response,
  input,
  previous,
  before,
  events,
}: StoredResponse): Promise<string> {
  const history = historyOf(previous);
  const lists = {
    input: input.length,
    history: history.length,
    before: before?.length ?? null,
    events: events?.length ?? null,
  };
  return written({ kind: 'response', response, lists }, [
    ...input,
    ...history,
    ...(before ?? []),
    ...(events ?? []),
  ]);
}

export function writtenConversation({ fields: { items, ...fields } }: StoredConversation): Promise<string> {
  return written({ kind: 'conversation', ...fields, lists: { items: items.length } }, items);
}

async function written(head: Head, lines: readonly unknown[]): Promise<string> {
  let text = JSON.stringify(head);
  let inTurn = 0;
  for (const line of lines) {
    const json = JSON.stringify(line);
    text += `\n${json}`;
    inTurn += json.length;
    if (inTurn < TURN) continue;
    await nextTurn();
    inTurn = 0;
  }
  return text;
}

/** The response or conversation of a record's text. @throws StoreError for an invalid record */
export async function readKept(id: string, text: string): Promise<StoredResponse | StoredConversation> {
  try {
    const lines = new Lines(text);
    const head = lines.next() as Head;
    if (head.kind === 'response') return await readResponse(id, head, lines);
    if (head.kind !== 'conversation') throw new Error('it is neither a response nor a conversation');
    const { createdAt, metadata, turn, lists } = head;
    if (head.id !== id) throw new Error('it has another id');
    if (!Number.isSafeInteger(createdAt) || typeof metadata !== 'object') throw new Error('it has no time');
    const items = await lines.items(lists.items);
    lines.end();
    return new StoredConversation({ id, createdAt, metadata, items, turn: turn ?? null });
  } catch (error) {
    throw new StoreError('foreign', `The record of ${id} cannot be read: ${(error as Error).message}.`);
  }
}

async function readResponse(
  id: string,
  { response, lists }: Extract<Head, { kind: 'response' }>,
  lines: Lines,
): Promise<StoredResponse> {
  if (response.id !== id || typeof response.status !== 'string') throw new Error('it has another id');
  response.output.forEach(checkItem);
  const input = (await lines.items(lists.input)) as StoredItem[];
  const previous = asPrevious(await lines.items(lists.history));
  const before = lists.before === null ? undefined : await lines.items(lists.before);
  const events = lists.events === null ? undefined : await lines.take(lists.events);
  if (events?.some((event) => typeof event !== 'string')) throw new Error('its events are none');
  lines.end();
  return { response, input, previous, before, events: events as string[] | undefined };
}

/** The lines of a record, read in turns. */
class Lines {
  readonly #text: string;
  #at = 0;
  #inTurn = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): unknown {
    if (this.#at > this.#text.length) throw new Error('it has too few lines');
    const end = this.#text.indexOf('\n', this.#at);
    const line = this.#text.slice(this.#at, end < 0 ? undefined : end);
    this.#at = end < 0 ? this.#text.length + 1 : end + 1;
    this.#inTurn += line.length;
    return JSON.parse(line);
  }

  async take(count: number | null): Promise<unknown[]> {
    if (!Number.isSafeInteger(count)) throw new Error('it does not say how many lines it has');
    const values: unknown[] = [];
    for (let i = 0; i < count!; i++) {
      values.push(this.next());
      if (this.#inTurn < TURN) continue;
      await nextTurn();
      this.#inTurn = 0;
    }
    return values;
  }

  async items(count: number | null): Promise<KeptItem[]> {
    const items = (await this.take(count)) as KeptItem[];
    items.forEach(checkItem);
    return items;
  }

  end(): void {
    if (this.#at <= this.#text.length) throw new Error('it has too many lines');
  }
}

function checkItem({ id, type }: KeptItem): void {
  if (typeof id !== 'string' || typeof type !== 'string') throw new Error('it has an item that is none');
}
