import type { MessagePort } from 'node:worker_threads';
import type { ErrorRecord } from '../base/error-record.js';
import type { PromptBlocks } from '../kvcache/block-hashes.js';
import type { KvCacheEvent } from '../kvcache/cache-events.js';
import type { EngineFormation } from './formation.js';
import type { IterationStats } from './gpt-manager-options.js';
import type { ResponseBatch } from './response-batch.js';
import type { InferenceRequest } from './types.js';

/** A request to end one of a request's sequences, by its sequence_index; the others continue. */
export interface SequenceStop {
  requestId: bigint;
  index: number;
}

/** Start data of the thread that follows guides. */
export interface GuideThreadSetup {
  port: MessagePort;
  /** Shared Int32 cells: REQUEST_BELL, REPLY_BELL, DEAD, BUSY_WITH, READING. */
  control: SharedArrayBuffer;
  enginePath: string;
  vocabSize: number;
}

/** Requests that take turns between waiting and running in an iteration; none is in both lists. */
export interface TurnChanges {
  /** Those that run now: for the first time, or again after a pause. */
  began: bigint[];
  /** Those that were paused and wait again. */
  paused: bigint[];
}

export interface ExecutorMemory {
  weightBytes: number;
  kvCacheBytes: number;
  /** Bytes of the secondary blocks. */
  secondaryKvCacheBytes: number;
  workspaceBytes: number;
}

/** Experts that are read from the disk, in bytes. */
export interface ExpertReading {
  /** Of all experts, of those that memory has room for, and of those that a token goes to, at most. */
  bytes: number;
  countedBytes: number;
  bytesPerToken: number;
  /** Of the disk, a second, as measured at the start; null: what was looked at was in memory. */
  bytesPerSecond: number | null;
}

/** Whole blocks, from the start of a prompt on. */
export interface BlockContents {
  /** Of a model of which no layer attends they have no bytes, and only their number says where the states belong. */
  numBlocks: number;
  /** Those of all blocks, one after the other; then, of a model with states, those of the states after the last block. */
  bytes: Uint8Array<ArrayBuffer>;
}

/** Whole blocks of a prompt that an equal engine has computed. */
export interface OfferedBlocks {
  /** Number of the first one. */
  first: number;
  numBlocks: number;
  /** The blocks' alone. */
  bytes: Uint8Array;
  /** The states after the last one; null: they come later, or the model has none. */
  state: Uint8Array | null;
}

/** Messages from the host's thread. After each message the host rings the doorbell. */
export type HostMessage =
  | { type: 'requests'; requests: InferenceRequest[] }
  | { type: 'stop'; requestIds: bigint[] }
  | { type: 'stopSequence'; stop: SequenceStop }
  /** Asks the worker to forget the blocks that the KV cache keeps for later requests; answered with `cacheReset`. */
  | { type: 'resetCache'; askId: number }
  /**
   * Asks for the content of a prompt's cached blocks, at most `maxBytes` bytes; answered with `blocksRead`.
   */
  | { type: 'readBlocks'; askId: number; prompt: PromptBlocks; maxBytes: number }
  /** Asks how many blocks of a prompt the cache has; answered with `blocksCounted`. */
  | { type: 'countBlocks'; askId: number; prompt: PromptBlocks }
  /** Brings content for blocks of a prompt; answered with `blocksWritten`. */
  | { type: 'writeBlocks'; askId: number; prompt: PromptBlocks; blocks: OfferedBlocks }
  /** The host will not name this task again: its adapter goes once no request uses it. */
  | { type: 'forgetAdapter'; taskId: bigint }
  /** Asks for formations, at most one every `intervalMs` milliseconds; 0: no more. */
  | { type: 'watch'; intervalMs: number }
  | { type: 'shutdown' };

/** Room for LoRA adapters. */
export interface AdapterRoom {
  /** Most adapters in one step. */
  maxAdapters: number;
  /** Greatest rank of an adapter. */
  maxRank: number;
  /** Most bytes of an adapter, in float32. */
  maxBytes: number;
  /** Pages of the host cache, and of the one that steps read. */
  hostPages: number;
  devicePages: number;
  /** Values of a row of a page; a module-layer takes whole rows. */
  width: number;
  rowsPerPage: number;
  /** Ranks count as multiples of this. */
  rankUnit: number;
}

/** Properties of the running engine, known once it is loaded. */
export interface EngineInfo {
  /** Changes with all that decides the bits of answers: weights, precisions, executor, instruction set, version. */
  fingerprint: string;
  executor: string;
  /** Why the executor is not the fastest one, and how to get that; null: it is the fastest, or was asked for. */
  executorFallback: string | null;
  /** Bound on the milliseconds of an iteration for chunks of long prompts; null: no bound. */
  maxChunkMs: number | null;
  instructionSet: string;
  threads: number;
  vocabSize: number;
  maxInputLen: number;
  maxSeqLen: number;
  maxNumSequences: number;
  maxBatchSize: number;
  maxNumTokens: number;
  /** Most sequences in one iteration, and so of one request. */
  maxSequences: number;
  maxTopLogProbs: number;
  numBlocks: number;
  tokensPerBlock: number;
  /** Bytes of a block, as readBlocks gives it; 0: no layer attends, and states alone are moved; null: nothing can be read or written. */
  bytesPerBlock: number | null;
  /** Bytes of the states of a sequence, which readBlocks gives after the blocks; 0: the model has none. */
  bytesPerState: number;
  /** Most tokens that a token attends to; null: all before it. */
  maxAttentionWindow: number | null;
  /** null: requests can have no adapters. */
  adapters: AdapterRoom | null;
  kvDtype: string;
  /** Tokens that end a generation, as the model names them; the first is the usual end_id. */
  endTokenIds: number[];
  padTokenId: number | null;
  /** Memory of the executor and of the draft model; `draft` is null without a draft model. */
  memory: ExecutorMemory & { draft: ExecutorMemory | null };
  /** Absent: memory holds all weights. */
  expertReading?: ExpertReading;
  loadMs: number;
}

/**
 * Messages of any worker about its own life: `ready` when its engine is loaded, `closed` when it ends and sends nothing
 * more.
 */
export type WorkerLife<Info> = { type: 'ready'; info: Info } | { type: 'closed' };

/** The last message of a worker that cannot continue, in place of an uncaught error. */
export interface WorkerFailure {
  type: 'failed';
  error: ErrorRecord;
}

/** Messages from the worker. */
export type WorkerMessage =
  | { type: 'ready'; info: EngineInfo }
  | {
      type: 'iteration';
      responses: ResponseBatch | null;
      json: string | null;
      stats: IterationStats | null;
      /** Number of requests that can be taken, as of `received`. */
      freePlaces: number;
      /** Number of requests taken out of the port since the start. */
      received: number;
      /** True after a request with terminateReqId: no more are taken. */
      draining: boolean;
      kvEvents?: KvCacheEvent[];
    }
  | { type: 'turns'; turns: TurnChanges }
  /** Statistics, sent with callbacks in a module, which get everything else of an iteration in the worker. */
  | { type: 'stats'; stats: IterationStats }
  | { type: 'kvEvents'; events: KvCacheEvent[] }
  /**
   * Ids of requests that a callback module has brought (`taken`), or whose end it is about to receive
   * (`answered`).
   */
  | { type: 'taken' | 'answered'; requestIds: bigint[] }
  /** Asks the host to start a thread that follows guides; null: to end the present one. */
  | { type: 'guide-thread'; setup: GuideThreadSetup | null }
  /** Answer to `resetCache`: the number of cached blocks that were forgotten. */
  | { type: 'cacheReset'; askId: number; droppedBlocks: number }
  /** Answer to `readBlocks`. */
  | { type: 'blocksRead'; askId: number; blocks: BlockContents }
  /** Answer to `countBlocks`. */
  | { type: 'blocksCounted'; askId: number; numBlocks: number }
  /** Answer to `writeBlocks`: number of these blocks that the cache has now. */
  | { type: 'blocksWritten'; askId: number; numBlocks: number }
  /** The requests in flight, sent while a watcher exists. */
  | { type: 'formation'; formation: EngineFormation }
  /** A failure that belongs to no request's answer. */
  | { type: 'error'; error: ErrorRecord }
  /**
   * Reports that no more requests are taken: the host asked for the end, or a request with terminateReqId
   * did.
   */
  | { type: 'draining' }
  /** Reports that nothing is active, nothing more will come, and the worker ends. */
  | { type: 'closed' };

/**
 * One Int32 in shared memory. The sender posts its message and then rings; the worker reads the bell before it
 * drains its port and sleeps only while the bell still shows what it read, so no message is slept through.
 */
export class Doorbell {
  readonly #cell: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#cell = new Int32Array(buffer);
  }

  static createBuffer(): SharedArrayBuffer {
    return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  }

  ring(): void {
    Atomics.add(this.#cell, 0, 1);
    Atomics.notify(this.#cell, 0);
  }

  read(): number {
    return Atomics.load(this.#cell, 0);
  }

  /** Blocks until the bell shows another value than `seen`, for at most `timeoutMs`. */
  wait(seen: number, timeoutMs: number): void {
    Atomics.wait(this.#cell, 0, seen, timeoutMs);
  }
}
