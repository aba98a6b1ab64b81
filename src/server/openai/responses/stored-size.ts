import { PER_LOG_PROB } from '../../../generation/answer-memory.js';
import { type JsonCounts, LIST_COUNTS, TEXT_COUNTS } from '../../web/bodies/json-size.js';
import { bodyMemory, storedMemory } from '../../web/memory/memory-estimates.js';
import { openedState } from './compaction-state.js';
import type { KeptItem, StoredResponse } from './response-store.js';

/** Bytes of an item's entry in the store's index. */
const INDEX_BYTES = 256;

/** Counts the parts of a stored value, as JsonSize counts those of its text. */
class KeptSize implements JsonCounts {
  /** Bytes that texts are longer by when they are written as JSON; counted where `countsEscapes` is true. */
  escapeBytes = 0;
  readonly #countsEscapes: boolean;
  /** UTF-8 bytes of texts, names and numbers, without those of log-probs. */
  bytes = 0;
  logProbBytes = 0;
  values = 0;
  containers = 0;
  keys = 0;
  strings = 0;

  constructor(countsEscapes = false) {
    this.#countsEscapes = countsEscapes;
  }

  /** Bytes that the value takes in the store. */
  get stored(): number {
    return storedMemory(this.bytes + this.logProbBytes, this);
  }

  /** Work of reading the value, as JsonSize has it. Names do not count: nothing that is stored is parsed again. */
  get work(): number {
    return this.values + LIST_COUNTS * this.containers + TEXT_COUNTS * (this.strings - this.keys);
  }

  add(value: unknown): void {
    this.values++;
    if (typeof value === 'string') {
      this.strings++;
      this.bytes += Buffer.byteLength(value);
      if (this.#countsEscapes) this.escapeBytes += escapeBytes(value);
    } else if (Array.isArray(value)) {
      this.containers++;
      for (const item of value) this.add(item);
    } else if (typeof value === 'object' && value !== null) {
      this.containers++;
      for (const [name, field] of Object.entries(value)) {
        if (field === undefined) continue;
        this.keys++;
        this.strings++;
        this.bytes += name.length;
        if (name === 'logprobs' && Array.isArray(field)) this.#addLogProbs(field);
        else this.add(field);
      }
    } else this.bytes += 8;
  }

  /** Counts log-probs at a fixed size each, without looking inside: there may be a hundred thousand, all alike. */
  #addLogProbs(entries: readonly ({ top_logprobs?: unknown } | null)[]): void {
    for (const entry of entries) {
      const top = entry?.top_logprobs;
      this.logProbBytes += PER_LOG_PROB * (1 + (Array.isArray(top) ? top.length : 0));
    }
  }
}

/** Bytes that JSON adds to a text: a quote is one more, a control character five. */
function escapeBytes(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0x22 || unit === 0x5c) bytes++;
    else if (unit < 0x20) bytes += 5;
    // Half a character becomes six bytes where it was counted as three.
    else if (unit >= 0xd800 && unit < 0xe000) {
      if (text.codePointAt(i)! > 0xffff) i++;
      else bytes += 3;
    }
  }
  return bytes;
}

/** Amounts that a request takes out of the store. */
export interface TakenSize {
  items: number;
  /** Bytes of texts and names. */
  bytes: number;
  /** Work of its values: see JsonSize. */
  work: number;
  /** Bytes of memory until the request is done, by estimate: those that it keeps alive, and those of what is made of it. */
  memory: number;
}

interface ItemSize extends TakenSize {
  /** Bytes in the store, by estimate. */
  stored: number;
  /**
   * Of an item of type compaction: whether it replaces everything before it. null: another item, or one not
   * made here.
   */
  compaction: 'whole' | 'partial' | null;
}

const itemSizes = new WeakMap<KeptItem, ItemSize>();

/** Size of an item, which does not change any more. It is computed once, when the item is stored. */
export function itemSize(item: KeptItem): ItemSize {
  const known = itemSizes.get(item);
  if (known !== undefined) return known;
  const size = new KeptSize(isToldAsJson(item));
  size.add(item);
  const bytes = size.bytes + size.escapeBytes;
  const stored = INDEX_BYTES + size.stored;
  const state = item.type === 'compaction' ? openedState(item.encrypted_content) : null;
  // Its messages are read one by one, but their texts are in its own.
  if (state !== null) size.add([state.before, state.after]);
  const memory = stored + bodyMemory(bytes, size);
  const compaction = state === null ? null : state.before === null ? 'partial' : 'whole';
  const found = { items: 1, bytes, work: size.work, memory, stored, compaction } as const;
  itemSizes.set(item, found);
  return found;
}

/** True for an item whose text reaches the model in JSON, where a byte may become six. */
function isToldAsJson({ type }: KeptItem): boolean {
  return type === 'custom_tool_call' || type === 'tool_search_call';
}

/** Notes that a copy of an item under another id is as large as the item. */
export function noteSameSize(item: KeptItem, copy: KeptItem): void {
  itemSizes.set(copy, itemSize(item));
}

/** Bytes of items in the store. */
export function itemsBytes(items: readonly KeptItem[]): number {
  return items.reduce((sum, item) => sum + itemSize(item).stored, 0);
}

/** Index of the last item that replaces all before it; -1: there is none. */
export function lastWhole(items: readonly KeptItem[]): number {
  return items.findLastIndex((item) => item.type === 'compaction' && itemSize(item).compaction === 'whole');
}

/** What a request takes that reads all of these. */
export function takenSize(items: readonly KeptItem[]): TakenSize {
  return items.map(itemSize).reduce(plus, NOTHING);
}

const NOTHING: TakenSize = { items: 0, bytes: 0, work: 0, memory: 0 };

function plus(one: TakenSize, other: TakenSize): TakenSize {
  return {
    items: one.items + other.items,
    bytes: one.bytes + other.bytes,
    work: one.work + other.work,
    memory: one.memory + other.memory,
  };
}

interface ResponseSize {
  /** Bytes of the response and of all that it refers to. */
  stored: number;
  /** What a request that continues it takes. */
  told: TakenSize;
}

const responseSizes = new WeakMap<StoredResponse, ResponseSize>();

/**
 * Size of a response with all that it refers to, so that responses which only entries of the store still reach stay
 * within the limit too. Each is counted once, however many continue it.
 */
function responseSize(stored: StoredResponse): ResponseSize {
  const fresh: StoredResponse[] = [];
  let link: StoredResponse | null = stored;
  for (; link !== null && !responseSizes.has(link); link = link.previous) fresh.push(link);
  let size = link === null ? { stored: 0, told: NOTHING } : responseSizes.get(link)!;
  for (const one of fresh.reverse()) {
    const items = turnOf(one);
    const whole = lastWhole(items);
    size = {
      stored: size.stored + ownBytes(one),
      told: whole < 0 ? plus(size.told, takenSize(items)) : takenSize(items.slice(whole)),
    };
    responseSizes.set(one, size);
  }
  return size;
}

/** The items of a response, with those of its request. */
export function turnOf({ before = [], input, response }: StoredResponse): KeptItem[] {
  return [...before, ...input, ...response.output];
}

function ownBytes({ response, input, before = [], events }: StoredResponse): number {
  return valueBytes(response) + itemsBytes(input) + itemsBytes(before) + (events ? valueBytes(events) : 0);
}

export function storedBytes(stored: StoredResponse): number {
  return responseSize(stored).stored;
}

/** What a request that continues a response takes. The responses before it stay alive with it. */
export function historySize(last: StoredResponse): TakenSize {
  const { stored, told } = responseSize(last);
  return { ...told, memory: told.memory + stored };
}

const knownBytes = new WeakMap<object, number>();

/** Bytes that a value takes in the store, which does not change any more. */
export function valueBytes(value: object): number {
  const known = knownBytes.get(value);
  if (known !== undefined) return known;
  const size = new KeptSize();
  size.add(value);
  knownBytes.set(value, size.stored);
  return size.stored;
}
