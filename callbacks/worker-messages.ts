import type { MessagePort } from 'node:worker_threads';
import type { CallbackName } from '../base/guarded-calls.js';

import type { KvCacheEvent } from '../kvcache/cache-events.js';
import type { EngineFormation } from './formation.js';
import type { IterationStats } from './gpt-manager-options.js';

import type { ResponseBatch } from './response-batch.js';
import type { InferenceRequest } from './types.js';

/** Ends one of a request's sequences, by its sequence_index; the others go on. */
export interface SequenceStop {
  requestId: bigint;
  index: number;
}

/** What a thread is started with. */
export interface GuideThreadSetup {
  port: MessagePort;
  /** Int32: REQUEST_BELL, REPLY_BELL, DEAD, BUSY_WITH, READING. */
  control: SharedArrayBuffer;
  enginePath: string;
  vocabSize: number;
}

export interface ExecutorMemory {
  weightBytes: number;
  kvCacheBytes: number;
  /** Bytes of the secondary blocks. */
  secondaryKvCacheBytes: number;
  workspaceBytes: number;
}

/** What the host's thread sends. Each message is followed by a ring of the doorbell. */
export type HostMessage =
  | { type: 'requests'; requests: InferenceRequest[] }
  | { type: 'stop'; requestIds: bigint[] }
  | { type: 'stopSequence'; stop: SequenceStop }
  /** Forget what the KV cache keeps for others; answered with `cacheReset`. */
  | { type: 'resetCache'; askId: number }
  /** Tell what is in flight, at most once in so many milliseconds; 0: no more. */
  | { type: 'watch'; intervalMs: number }
  | { type: 'shutdown' };

/** The engine as it runs, known once it is loaded. */
export interface EngineInfo {
  executor: string;
  /** Why it is not the fastest one, and how to get that; null: it is, or it was asked for. */
  executorFallback: string | null;
  /** Milliseconds of an iteration for chunks of long prompts; null: no bound. */
  maxChunkMs: number | null;
  instructionSet: string;
  threads: number;
  vocabSize: number;
  maxInputLen: number;
  maxSeqLen: number;
  maxNumSequences: number;
  maxBatchSize: number;
  maxNumTokens: number;
  /** Sequences of one iteration, and so of one request. */
  maxSequences: number;
  maxTopLogProbs: number;
  numBlocks: number;
  tokensPerBlock: number;
  /** Tokens that a token attends to; null: all before it. */
  maxAttentionWindow: number | null;
  kvDtype: string;
  /** Tokens that end a generation, as the model names them; the first is the usual end_id. */
  endTokenIds: number[];
  padTokenId: number | null;
  /** What the executor takes, and beside it that of the draft model; null: there is none. */
  memory: ExecutorMemory & { draft: ExecutorMemory | null };
  loadMs: number;
}

/** What any worker says of its life: its engine is loaded; nothing more will come and it ends. */
export type WorkerLife<Info> = { type: 'ready'; info: Info } | { type: 'closed' };

/** What the worker sends. */
export type WorkerMessage =
  | { type: 'ready'; info: EngineInfo }
  | {
      type: 'iteration';
      responses: ResponseBatch | null;
      json: string | null;
      stats: IterationStats | null;
      /** Requests that can be taken, as of `received`. */
      freePlaces: number;
      /** Requests taken out of the port since the start. */
      received: number;
      /** A request with terminateReqId came: no more are taken. */
      draining: boolean;
      kvEvents?: KvCacheEvent[];
    }
  /** Sent with callbacks in a module, which get everything else of an iteration in the worker. */
  | { type: 'stats'; stats: IterationStats }
  | { type: 'kvEvents'; events: KvCacheEvent[] }
  /** Requests that a module with callbacks has brought, or that it is about to be told the end of. */
  | { type: 'taken' | 'answered'; requestIds: bigint[] }
  /** Start a thread that follows guides; null: end the one there is. */
  | { type: 'guide-thread'; setup: GuideThreadSetup | null }
  /** The answer to `resetCache`: blocks that could have been found, and no longer can. */
  | { type: 'cacheReset'; askId: number; droppedBlocks: number }
  /** What is in flight, where it is watched. */
  | { type: 'formation'; formation: EngineFormation }
  /** A failure that belongs to no request's answer; `callback`: the one of the module that failed, where one did. */
  | { type: 'error'; message: string; callback: CallbackName | null }
  /** No more requests are taken: the host asked for the end, or a request with terminateReqId did. */
  | { type: 'draining' }
  /** Nothing is active and nothing more will come; the worker ends. */
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

  /** Blocks until the bell shows something else than `seen`, at most for `timeoutMs`. */
  wait(seen: number, timeoutMs: number): void {
    Atomics.wait(this.#cell, 0, seen, timeoutMs);
  }
}
