import type { MessagePort } from 'node:worker_threads';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { BlockFormat, DiskKey } from './block-file.js';

/** A block, or the states after one: its tokens are those of its chain, from the first one on. */
export interface WrittenBlock extends PromptBlocks {
  key: DiskKey;
}

/** What is read of a prompt: a block that ends with its first `length` tokens, or the states after them. */
export interface ReadBlock {
  key: DiskKey;
  length: number;
}

/** What the loop asks of the thread that reads and writes. */
export type DiskAsk =
  /** Writes blocks whose contents lie in `bytes` one after the other. Answered with `written`. */
  | { type: 'write'; blocks: WrittenBlock[]; bytes: Uint8Array<ArrayBuffer> }
  /** Reads blocks of a prompt in their order, as far as they can be read. Answered with `read`. */
  | { type: 'read'; readId: number; prompt: PromptBlocks; blocks: ReadBlock[] }
  /** These have been of use: those of a chain, from number 0 on. */
  | { type: 'used'; keys: DiskKey[] }
  /** Removes files whose blocks will be written once more. */
  | { type: 'drop'; keys: DiskKey[] }
  /** Erases all files of the engine. Answered with `erased`. */
  | { type: 'erase' }
  /** Writes what waits to be written and ends. Answered with `closed`. */
  | { type: 'close' };

/** Files and bytes of the folder, and counts since the start. */
export interface DiskUsage {
  files: number;
  bytes: number;
  /** Files that were removed because they were damaged. */
  damaged: number;
  /** Reads and writes that failed. */
  errors: number;
}

export type DiskReply =
  /** A sentence about what went wrong, once for each kind. */
  { type: 'problem'; message: string } | ({ usage: DiskUsage } & DiskAnswer);

export type DiskAnswer =
  | { type: 'listed'; keys: DiskKey[] }
  /** A `write` of `numBytes` bytes is done. Blocks that could not be written are not in `keys`. */
  | { type: 'written'; numBytes: number; keys: DiskKey[]; removed: DiskKey[] }
  /**
   * The content of the first of the requested blocks, as many as there are. isDamaged: the one after them was
   * damaged.
   */
  | { type: 'read'; readId: number; bytes: Uint8Array<ArrayBuffer>; isDamaged: boolean; removed: DiskKey[] }
  | { type: 'erased' }
  | { type: 'closed' };

/** The loop's end of the way to the thread. */
export interface DiskStore {
  /** What its files have in common. */
  readonly format: BlockFormat;
  readonly maxBytes: number;
  /** Asks; the buffers change hands. */
  post(ask: DiskAsk): void;
  /** The next reply, in their order; null: there is none yet. */
  receive(): DiskReply | null;
  /** Sleeps until a reply comes, or so long. */
  wait(timeoutMs: number): void;
}

/** Start data of the thread. */
export interface DiskWorkerData {
  port: MessagePort;
  /** Shared Int32: the number of replies. */
  replies: SharedArrayBuffer;
  /** The engine's doorbell, which each reply rings. */
  doorbell: SharedArrayBuffer;
  path: string;
  maxBytes: number;
  format: BlockFormat;
}
