import { bytesOf } from '../../../callbacks/infer/answer-limits.js';
import type { InferParameters, InferTensor } from '../../../callbacks/infer/infer-types.js';

/** An answer to be kept. */
export interface KeptAnswer {
  readonly outputs: readonly InferTensor[];
  readonly parameters?: InferParameters;
}

/** A model whose answers are kept: they are dropped together. */
export type CacheOwner = object;

interface Entry {
  owner: CacheOwner;
  answer: KeptAnswer;
  bytes: number;
}

/** What is counted since the start. */
export interface CacheCounts {
  entries: number;
  bytes: number;
  maxBytes: number;
  hits: number;
  misses: number;
  evictions: number;
  lookupNs: number;
  insertNs: number;
}

/** Bytes of memory that an entry takes in addition to its tensors, and a tensor to its elements, about. */
const ENTRY_BYTES = 512;
const TENSOR_BYTES = 256;
/** Where a tensor begins in the memory of its answer. */
const ALIGNMENT = 8;

/**
 * Answers by the requests that they answer, of all models: the least recently used ones go where there are
 * more bytes than may be. Keys, names and what an entry itself takes are counted with the elements. What is
 * kept has memory of its own, and what is handed out is a copy.
 *
 *   entries   [ oldest | ... | newest ]      find moves an entry to the end; put evicts from the beginning
 */
export class ResponseCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, Entry>();
  readonly #keysOf = new Map<CacheOwner, Set<string>>();
  #bytes = 0;
  #hits = 0;
  #misses = 0;
  #evictions = 0;
  #lookupNs = 0;
  #insertNs = 0;

  /** @param maxBytes of everything that is kept */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** A copy of the answer; null: there is none. */
  find(key: string): KeptAnswer | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#misses++;
      return null;
    }
    this.#hits++;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return ownCopy(entry.answer);
  }

  /** An answer with this key would have room; it may be there already. */
  takes(key: string, answer: KeptAnswer): boolean {
    return sizeOf(key, answer) <= this.#maxBytes;
  }

  /**
   * Keeps an answer, whose memory is its own (ownCopy). False: there is one of this key already, or it is larger than all that may be kept.
   */
  put(owner: CacheOwner, key: string, answer: KeptAnswer): boolean {
    const bytes = sizeOf(key, answer);
    if (this.#entries.has(key) || bytes > this.#maxBytes) return false;
    while (this.#bytes + bytes > this.#maxBytes) {
      this.#remove(this.#entries.keys().next().value!);
      this.#evictions++;
    }
    this.#entries.set(key, { owner, answer, bytes });
    this.#bytes += bytes;
    const keys = this.#keysOf.get(owner);
    if (keys === undefined) this.#keysOf.set(owner, new Set([key]));
    else keys.add(key);
    return true;
  }

  /** Forgets the answers of a model. */
  drop(owner: CacheOwner): void {
    for (const key of this.#keysOf.get(owner) ?? []) this.#remove(key);
  }

  noteLookup(ns: number): void {
    this.#lookupNs += ns;
  }

  noteInsertion(ns: number): void {
    this.#insertNs += ns;
  }

  counts(): CacheCounts {
    return {
      entries: this.#entries.size,
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictions,
      lookupNs: this.#lookupNs,
      insertNs: this.#insertNs,
    };
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key)!;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    const keys = this.#keysOf.get(entry.owner)!;
    keys.delete(key);
    if (keys.size === 0) this.#keysOf.delete(entry.owner);
  }
}

/** Bytes that an answer takes with its key: names and shapes too, since small tensors may have long ones. */
function sizeOf(key: string, { outputs, parameters }: KeptAnswer): number {
  let bytes = ENTRY_BYTES + key.length + bytesOf(outputs, parameters);
  for (const { name, shape, data } of outputs)
    bytes += TENSOR_BYTES + 2 * name.length + 8 * shape.length + padding(data.length);
  return bytes;
}

/** The same in one piece of memory that is not shared. */
export function ownCopy({ outputs, parameters }: KeptAnswer): KeptAnswer {
  const bytes = outputs.reduce((sum, { data }) => sum + data.length + padding(data.length), 0);
  const { buffer } = Buffer.allocUnsafeSlow(bytes);
  let offset = 0;
  const copies = outputs.map(({ name, datatype, shape, data }): InferTensor => {
    const own = new Uint8Array(buffer, offset, data.length);
    own.set(data);
    offset += data.length + padding(data.length);
    return { name, datatype, shape: [...shape], data: own };
  });
  return { outputs: copies, ...(parameters === undefined ? {} : { parameters: { ...parameters } }) };
}

const padding = (length: number) => (ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT;
