import { PER_LOG_PROB } from '../../../generation/answer-memory.js';
import { storedMemory } from '../../memory-estimates.js';
import type { KeptItem, StoredResponse } from './response-store.js';

/** Counts the parts of a stored value, as JsonSize counts those of its text. */
class KeptSize {
  bytes = 0;
  values = 0;
  containers = 0;
  keys = 0;
  strings = 0;

  add(value: unknown): void {
    this.values++;
    if (typeof value === 'string') {
      this.strings++;
      this.bytes += Buffer.byteLength(value);
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
      this.bytes += PER_LOG_PROB * (1 + (Array.isArray(top) ? top.length : 0));
    }
  }
}

const known = new WeakMap<StoredResponse, number>();

/**
 * Estimated bytes of a response with all that it refers to, so that responses which only entries of the store still
 * reach stay within the limit too. Each is counted once, however many continue it.
 */
export function storedBytes(stored: StoredResponse): number {
  const fresh: StoredResponse[] = [];
  let link: StoredResponse | null = stored;
  for (; link !== null && !known.has(link); link = link.previous) fresh.push(link);
  let bytes = link === null ? 0 : known.get(link)!;
  for (const one of fresh.reverse()) {
    bytes += ownBytes(one);
    known.set(one, bytes);
  }
  return bytes;
}

function ownBytes({ response, input, before = [], events }: StoredResponse): number {
  const size = new KeptSize();
  size.add(response);
  size.add(input);
  if (events !== undefined) size.add(events);
  return storedMemory(size.bytes, size) + before.reduce((sum, item) => sum + itemBytes(item), 0);
}

const knownItems = new WeakMap<KeptItem, number>();

/** Estimated bytes of an item, which does not change any more. */
export function itemBytes(item: KeptItem): number {
  const found = knownItems.get(item);
  if (found !== undefined) return found;
  const bytes = valueBytes(item);
  knownItems.set(item, bytes);
  return bytes;
}

export function valueBytes(value: unknown): number {
  const size = new KeptSize();
  size.add(value);
  return storedMemory(size.bytes, size);
}
