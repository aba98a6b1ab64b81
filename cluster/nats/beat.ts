import { isObject } from '../../base/option-values.js';
import { isCount, isList, isName, isSwitch, isText, isWord } from './field-checks.js';

/** File that says how a model's pictures are prepared. */
export const PICTURES_FILE = 'tower/pictures.json';

/** One file that a gateway needs to serve the model. */
export interface FileFacts {
  name: string;
  bytes: number;
  /** SHA-256, in hexadecimal digits. */
  digest: string;
}

/** What a worker says of itself. */
export interface Beat {
  kind: 'beat';
  worker: string;
  /** Fingerprint of its pool. */
  pool: string;
  /**
   * Absent: it is the card of its pool, which this worker has sent before, or another worker has. A worker
   * sends it when asked, and when something has changed that rarely changes.
   */
  model?: ModelCard;
  /** Requests that it takes at once, and those that it has. */
  places: number;
  held: number;
  /** Blocks of its KV cache, and those in use. */
  maxBlocks: number;
  usedBlocks: number;
  /** It computes blocks of prompts for others, and answers no requests. Absent: it answers them. */
  isPrefill?: boolean;
  /** Digest of all that decides the content of its blocks; absent: it neither gives nor takes any. */
  layout?: string;
  /**
   * Number of the changes of its cache that it has published; see CacheChange. Absent: it publishes none, and
   * takes only requests from the stream.
   */
  cacheNumber?: number;
  /** It takes no more requests, and ends when it has none. */
  isLeaving: boolean;
  /** It has ended. */
  isGone: boolean;
}

/** A beat with the card of its model. */
export type WholeBeat = Beat & { model: ModelCard };

/** What gateways have to know of a model. Equal for all workers of a pool. */
export interface ModelCard {
  name: string;
  aliases: string[];
  /** Digest of how texts become tokens: with another one a gateway makes other requests. */
  text: string;
  /** Name of the file or folder that it was loaded from. */
  fileName: string;
  files: FileFacts[];
  /** Properties that a server reports about its engine; see ModelInfo. */
  info: { [name: string]: string | number | null };
  engine: EngineCard;
  /** Room for adapters; null: the model takes none. See AdapterRoom. */
  adapterRoom: { [name: string]: number } | null;
  adapters: AdapterCard[];
  /** What it sees with: the digest of its tower, and the most patches of a picture. Absent: it takes no pictures. */
  sight?: { tower: string; maxPatches: number };
  /** Sentence on why it takes no pictures, where it might have. */
  whyBlind?: string;
  /** Settings of requests that have none of their own; absent: the engine's. See SamplingDefaults. */
  sampling?: { [option: string]: number };
}

/**
 * The key that distinguishes models that a gateway serves: two may have one name for a while, as one follows
 * the other. With another tower, or other settings of how pictures are prepared, a gateway makes other
 * requests too.
 */
export function modelKey({ name, text, sight, files }: ModelCard): string {
  if (sight === undefined) return `${text}:${name}`;
  const pictures = files.find((file) => file.name === PICTURES_FILE);
  return `${text}.${sight.tower}.${sight.maxPatches}.${pictures?.digest}:${name}`;
}

/** Name of the model with a key. */
export function nameOfKey(key: string): string {
  return key.slice(key.indexOf(':') + 1);
}

export interface EngineCard {
  vocabSize: number;
  endTokenIds: number[];
  maxInputLen: number;
  maxSeqLen: number;
  maxSequences: number;
  maxNumTokens: number;
  maxBeamWidth: number;
  maxAttentionWindow: number | null;
  tokensPerBlock: number;
}

export interface AdapterCard {
  name: string;
  rank: number;
  modules: string[];
  bytes: number;
  digest: string;
  /**
   * What of it is in the hashes of blocks: its number at the worker, and the digest of its weights. Absent:
   * the gateway cannot know how much of a prompt with it is cached.
   */
  blockKey?: { taskId: number; fingerprint: string };
}

/** Bounds of what a worker reports about its model. */
const MAX_ALIASES = 100;
const MAX_FILES = 16;
const MAX_ADAPTERS = 1_000;
const MAX_END_TOKENS = 1_000;
const MAX_FACTS = 100;

function isBlockKey(value: unknown): boolean {
  return value === undefined || (isObject(value) && isCount(value.taskId) && isName(value.fingerprint));
}

/** Every field of a card that is used is of its type. */
export function isModelCard(model: unknown): model is ModelCard {
  if (!isObject(model) || !isObject(model.info) || !isObject(model.engine)) return false;
  const { name, aliases, text, fileName, files, engine, adapterRoom: room, adapters, sampling } = model;
  const { sight, whyBlind } = model;
  const isFile = (file: unknown) =>
    isObject(file) && isName(file.name) && isCount(file.bytes) && isName(file.digest);
  const isAdapter = (one: unknown) =>
    isObject(one) && isName(one.name) && isName(one.digest) && isBlockKey(one.blockKey);
  const { endTokenIds, maxAttentionWindow: window, ...numbers } = engine as Record<string, unknown>;
  return (
    [name, text, fileName].every(isName) &&
    isList(aliases, isName, MAX_ALIASES) &&
    isList(files, isFile, MAX_FILES) &&
    isList(adapters, isAdapter, MAX_ADAPTERS) &&
    isList(endTokenIds, isCount, MAX_END_TOKENS) &&
    Object.keys(model.info).length <= MAX_FACTS &&
    (sight === undefined || (isObject(sight) && isName(sight.tower) && isCount(sight.maxPatches))) &&
    (whyBlind === undefined || isName(whyBlind)) &&
    (sampling === undefined || (isObject(sampling) && Object.keys(sampling).length <= MAX_FACTS)) &&
    (window === null || isCount(window)) &&
    (room === null || (isObject(room) && Object.values(room).every(isCount))) &&
    Object.values(numbers).every(isCount)
  );
}

/** Every field that is used is of its type. */
export function isBeat({
  worker,
  pool,
  model,
  places,
  held,
  maxBlocks,
  usedBlocks,
  isPrefill,
  layout,
  cacheNumber = 0,
}: Record<string, unknown>): boolean {
  return (
    isSwitch(isPrefill) &&
    isCount(cacheNumber) &&
    (layout === undefined || isText(layout)) &&
    isWord(worker) &&
    isWord(pool) &&
    (model === undefined || isModelCard(model)) &&
    [places, held, maxBlocks, usedBlocks].every(isCount)
  );
}
