import { messageOf } from '../../base/error-text.js';
import type { TokenRequest } from '../../callbacks/token-request.js';
import type { BlockContents, OfferedBlocks } from '../../callbacks/worker-messages.js';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import { fetchBlocks } from './fetch-blocks.js';
import { KeptBlocks } from './kept-blocks.js';
import type { BlocksAnswer, BlocksMessage, WorkItem } from './messages.js';
import { namesOfItem, type RequestNames } from './request-names.js';
import type { WorkerPort } from './worker-port.js';

/** An engine whose cached blocks can be had: an InProcessHost. */
export interface BlockEngine {
  readBlocks(prompt: PromptBlocks, maxBytes: number): Promise<BlockContents>;
  countBlocks(prompt: PromptBlocks): Promise<number>;
  writeBlocks(prompt: PromptBlocks, blocks: OfferedBlocks): Promise<number>;
}

export interface HandOverOptions {
  port: Pick<WorkerPort, 'fetchBlocks' | 'maxBytes'>;
  engine: BlockEngine;
  /** See Beat. */
  layout: string;
  tokensPerBlock: number;
  /** 0: no layer attends, and states alone are handed over. */
  bytesPerBlock: number;
  /** Bytes of the states after the last block; 0: the model has none. */
  bytesPerState: number;
  /** Bytes of blocks that are kept for others at most. */
  maxBytes: number;
  onWarning: (message: string, about?: RequestNames) => void;
}

/** Milliseconds that blocks are kept for the worker that is to fetch them. */
const KEPT_MS = 10_000;
/** Requests whose blocks are fetched at once; others wait for their turn. */
const MAX_FETCHED = 4;
/** Longest slice: others of the connection want to pass too. */
const SLICE_BYTES = 1024 * 1024;

/**
 * A worker's part in handing over blocks of prompts from the worker that computes them to the one that answers:
 *
 *   prefill worker   engine -> keep -> | slices, as they are asked for | -> bring -> engine   worker that answers
 *
 * The answering worker asks only for the blocks that its own cache does not have: mostly those after a system
 * prompt. Whatever goes wrong, the worker that answers computes what it does not have.
 */
export class HandOvers {
  readonly #options: HandOverOptions;
  readonly #kept: KeptBlocks;
  /** Turns of those that wait to fetch. */
  readonly #waiting: (() => void)[] = [];
  #numFetching = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: HandOverOptions) {
    this.#options = options;
    this.#kept = new KeptBlocks(options.maxBytes, KEPT_MS);
  }

  get layout(): string {
    return this.#options.layout;
  }

  /** Resolves when there are no blocks that others may still fetch. */
  async whenEmpty(): Promise<void> {
    if (this.#kept.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  #noteLess(): void {
    if (this.#kept.size === 0) this.#onEmpty?.();
  }

  /** Copies the blocks of a prompt out of the cache. Never rejects. */
  async keep(
    { id, attempt }: WorkItem,
    request: TokenRequest,
  ): Promise<{ bytes: number; numBlocks: number }> {
    const nothing = { bytes: 0, numBlocks: 0 };
    const { engine } = this.#options;
    try {
      const { numBlocks, bytes } = await engine.readBlocks(promptOf(request), this.#kept.room);
      if (numBlocks === 0 || !this.#kept.keep(id, attempt, bytes, performance.now())) return nothing;
      return { bytes: bytes.length, numBlocks };
    } catch {
      // The engine is lost.
      return nothing;
    }
  }

  answer(message: BlocksMessage): BlocksAnswer {
    const answer = this.#kept.answer(message, this.#sliceBytes);
    this.#noteLess();
    return answer;
  }

  release(id: string): void {
    this.#kept.release(id);
    this.#noteLess();
  }

  /** To be called again and again. */
  expire(): void {
    this.#kept.expire(performance.now());
    this.#noteLess();
  }

  /** Brings blocks for a request that another worker has computed, as far as it can. Never rejects. */
  async bring(item: WorkItem, request: TokenRequest, isWanted: () => boolean): Promise<void> {
    const { id, handOver } = item;
    const { port, engine, layout, tokensPerBlock, bytesPerBlock, bytesPerState, onWarning } = this.#options;
    if (handOver === undefined || handOver.layout !== layout) return;
    const { numBlocks, bytes } = handOver;
    if (numBlocks === 0 || numBlocks * tokensPerBlock > request.promptTokens.length) return;
    if (bytes !== numBlocks * bytesPerBlock + bytesPerState) return;
    await this.#turn();
    const prompt = promptOf(request);
    try {
      await fetchBlocks({
        id,
        handOver,
        stateBytes: bytesPerState,
        first: await engine.countBlocks(prompt),
        maxBytes: this.#sliceBytes,
        ask: (worker, message) => port.fetchBlocks(worker, message),
        write: (blocks) => engine.writeBlocks(prompt, blocks),
        isWanted,
      });
    } catch (error) {
      onWarning(`The blocks of a prompt could not be taken over: ${messageOf(error)}`, namesOfItem(item));
    } finally {
      this.#numFetching--;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    this.#numFetching++;
    if (this.#numFetching > MAX_FETCHED) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  get #sliceBytes(): number {
    return Math.min(SLICE_BYTES, this.#options.port.maxBytes);
  }
}

/** Requests with adapters are never handed over. */
function promptOf({ promptTokens, cacheSalt }: TokenRequest): PromptBlocks {
  return { tokens: Int32Array.from(promptTokens), salt: cacheSalt ?? 0n };
}
