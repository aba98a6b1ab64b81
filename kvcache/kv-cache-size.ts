import { type NamedText, option, says } from '../base/named-text.js';
import { retell } from '../base/skein-error.js';
import type { AttentionWindow } from './attention-window.js';
import type { CacheShape, KvDtype, StateShape } from './cache-shape.js';
import { longestTable, type StateSizes } from './kv-cache-options.js';

export interface KvCacheSizeOptions {
  /** Memory that may still be taken, after the weights are loaded. */
  availableBytes: number;
  /** Source of availableBytes, for the error message. */
  availableFrom?: NamedText;
  /** Share of availableBytes that the cache may take, above 0 and at most 1. */
  freeMemoryFraction: number;
  /** 0: no layer keeps anything of a token, and blocks only count. */
  bytesPerBlock: number;
  tokensPerBlock: number;
  /** kvCacheConfig.maxTokens; absent: no such limit. */
  maxTokens?: number;
  maxNumSequences: number;
  maxSeqLen: number;
  /** Attention window; null or absent: sequences are held whole. */
  window?: AttentionWindow | null;
}

export interface KvCacheSize {
  numBlocks: number;
  bytes: number;
  /** The limit that decided; `memory` also for blocks without bytes, of which the lists take some. */
  limitedBy: 'maxTokens' | 'memory' | 'maxNumSequences x maxSeqLen';
}

/**
 * Bytes of one block in all layers. In int8 each head of a token has a key of whole pairs of bytes with a scale in f32, and
 * a value of bytes with a scale.
 */
export function kvBytesPerBlock(
  caches: readonly CacheShape[],
  tokensPerBlock: number,
  kvDtype: KvDtype,
): number {
  return caches.reduce((sum, shape) => sum + tokensPerBlock * kvBytesPerToken(shape, kvDtype), 0);
}

/** Bytes of a token in one layer. */
export function kvBytesPerToken({ kvHeads, keyDim, valueDim }: CacheShape, kvDtype: KvDtype): number {
  const bytesOfHead = {
    f32: 4 * (keyDim + valueDim),
    bf16: 2 * (keyDim + valueDim),
    int8: 2 * Math.ceil(keyDim / 2) + valueDim + 8,
  };
  return kvHeads * bytesOfHead[kvDtype];
}

/** Bytes of one sequence's states: each begins at a cache line of its own. */
export function stateBytesPerSlot(states: readonly StateShape[]): number {
  return states.reduce(
    (sum, { size }) => sum + STATE_ALIGN_BYTES * Math.ceil((4 * size) / STATE_ALIGN_BYTES),
    0,
  );
}
const STATE_ALIGN_BYTES = 64;
export const MAX_STATE_SLOTS = 2 ** 20 - 1;

export interface StateBudget {
  bytesPerSlot: number;
  /** Further bytes of a running sequence: the log of its draft. Default 0. */
  logBytes?: number;
  /** Memory for the cache, states included. */
  availableBytes: number;
  /** Share of it that states may take. */
  fraction: number;
  /** Sequences that run side by side at most, and those of one request. */
  maxSequences: number;
  maxBeamWidth: number;
  /** Most snapshots; 0: none is made. */
  mostSnapshots: number;
}

/**
 * Number of slots for states: as many as sequences may run, and the rest for snapshots, as many as the pool may have blocks. Where
 * `fraction` of the memory holds fewer, half of it is for snapshots, and further sequences wait.
 * @throws an error with the numbers if not even one request's fit
 */
export function stateSlots(budget: StateBudget): Pick<StateSizes, 'numSlots' | 'numSnapshots'> {
  const { bytesPerSlot, logBytes = 0, availableBytes, fraction, maxSequences, maxBeamWidth } = budget;
  const { mostSnapshots } = budget;
  const bytes = fraction * availableBytes;
  const bytesPerSequence = bytesPerSlot + logBytes;
  const inMemory = Math.floor(bytes / bytesPerSequence);
  if (inMemory >= maxBeamWidth) {
    // An executor numbers no more slots.
    const most = Math.min(inMemory, MAX_STATE_SLOTS);
    const least = mostSnapshots === 0 ? most : Math.ceil(most / 2);
    const numSlots = Math.min(maxSequences, Math.max(maxBeamWidth, least));
    const left = Math.floor((bytes - numSlots * bytesPerSequence) / bytesPerSlot);
    return { numSlots, numSnapshots: Math.min(left, mostSnapshots, MAX_STATE_SLOTS - numSlots) };
  }
  throw new RangeError(
    `The states of ${maxBeamWidth} ${maxBeamWidth === 1 ? 'sequence' : 'sequences'} take ${mebibytes(maxBeamWidth * bytesPerSequence)}, but ${fraction} of the ${mebibytes(availableBytes)} of memory available hold ${inMemory}. Give it more memory.`,
  );
}

/**
 * Number of blocks that the pool gets: the least of
 *
 *   maxTokens                     in whole blocks, rounded up
 *   memory                        freeMemoryFraction * availableBytes, rounded down; MAX_EMPTY_BLOCKS where they have no bytes
 *   maxNumSequences x maxSeqLen   more than this could never be held
 *
 * With an attention window a sequence of maxSeqLen takes the blocks of the window. @throws an error with the numbers if
 * not even one sequence of maxSeqLen fits
 */
export function kvCacheSize(options: KvCacheSizeOptions): KvCacheSize {
  checkOptions(options);
  const { bytesPerBlock, tokensPerBlock, maxTokens, maxSeqLen, maxNumSequences } = options;
  const blocksPerSequence = longestTable(maxSeqLen, tokensPerBlock, options.window ?? null);
  let numBlocks = maxNumSequences * blocksPerSequence;
  let limitedBy: KvCacheSize['limitedBy'] = 'maxNumSequences x maxSeqLen';
  const memoryBytes = Math.floor(options.freeMemoryFraction * options.availableBytes);
  const inMemory =
    bytesPerBlock === 0
      ? Math.max(MAX_EMPTY_BLOCKS, blocksPerSequence)
      : Math.max(0, Math.floor(memoryBytes / bytesPerBlock));
  if (inMemory < numBlocks) {
    numBlocks = inMemory;
    limitedBy = 'memory';
  }
  if (maxTokens !== undefined && Math.ceil(maxTokens / tokensPerBlock) < numBlocks) {
    numBlocks = Math.ceil(maxTokens / tokensPerBlock);
    limitedBy = 'maxTokens';
  }
  if (numBlocks < blocksPerSequence) throw tooSmall(options, numBlocks, blocksPerSequence, limitedBy);
  return { numBlocks, bytes: numBlocks * bytesPerBlock, limitedBy };
}

/** Blocks without bytes of a pool, unless one sequence needs more: some tens of bytes are listed of each. */
const MAX_EMPTY_BLOCKS = 2 ** 20;

function tooSmall(
  options: KvCacheSizeOptions,
  numBlocks: number,
  blocksPerSequence: number,
  limitedBy: KvCacheSize['limitedBy'],
): RangeError {
  const { tokensPerBlock, bytesPerBlock, maxSeqLen, maxTokens } = options;
  const window = options.window ? ` in a window of ${options.window.maxAttentionWindow}` : '';
  const lower = option(options.window ? 'maxAttentionWindow' : 'maxSeqLen');
  const needed = says`One sequence of ${option('maxSeqLen')} = ${maxSeqLen} tokens${window} needs ${blocksPerSequence} KV cache blocks of ${tokensPerBlock} tokens (${mebibytes(blocksPerSequence * bytesPerBlock)})`;
  if (limitedBy === 'maxTokens') {
    const most = option('maxTokens');
    return retell(
      new RangeError(),
      says`${needed}, but ${most} = ${maxTokens} allows ${numBlocks}. Raise ${most} or lower ${lower}.`,
    );
  }
  const from = options.availableFrom === undefined ? '' : says` (${options.availableFrom})`;
  return retell(
    new RangeError(),
    says`${needed}, but ${numBlocks} fit into ${options.freeMemoryFraction} of the ${mebibytes(options.availableBytes)} of memory available${from}. Give it more memory or lower ${lower}.`,
  );
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function checkOptions(options: KvCacheSizeOptions): void {
  const { freeMemoryFraction: fraction, availableBytes } = options;
  if (!(fraction > 0 && fraction <= 1)) {
    throw new RangeError(
      `The fraction of free memory for the KV cache is ${fraction}; above 0 and at most 1 is expected.`,
    );
  }
  if (!Number.isFinite(availableBytes)) {
    throw new RangeError(`The available memory is ${availableBytes} bytes; a finite number is expected.`);
  }
  for (const name of [
    'bytesPerBlock',
    'tokensPerBlock',
    'maxTokens',
    'maxNumSequences',
    'maxSeqLen',
  ] as const) {
    const value = options[name];
    const least = name === 'bytesPerBlock' ? 0 : 1;
    if (value !== undefined && (!Number.isInteger(value) || value < least)) {
      throw retell(
        new RangeError(),
        says`${option(name)} is ${value}; a whole number of at least ${least} is expected.`,
      );
    }
  }
}
