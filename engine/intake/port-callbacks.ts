import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { recordOf } from '../../base/error-record.js';
import type { EngineFormation } from '../../callbacks/formation.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import { transferables } from '../../callbacks/response-batch.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import type {
  BlockContents,
  HostMessage,
  OfferedBlocks,
  SequenceStop,
  TurnChanges,
  WorkerMessage,
} from '../../callbacks/worker-messages.js';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import type { AdapterArrivals } from './adapter-arrivals.js';
import { numTaken } from './intake-budget.js';
import type { IterationReport, LoopCallbacks } from './loop-callbacks.js';

type BlockAsk = Extract<HostMessage, { type: 'readBlocks' | 'countBlocks' | 'writeBlocks' }>;

/** The loop, as far as blocks are asked of it. */
export interface BlockSource {
  readBlocks(prompt: PromptBlocks, maxBytes: number): BlockContents;
  countBlocks(prompt: PromptBlocks): number;
  writeBlocks(prompt: PromptBlocks, blocks: OfferedBlocks): number;
}

/** The loop, as far as its cache can be reset. */
export interface ResettableCache {
  readonly isErasing: boolean;
  resetCache(): number;
}

function isBlockAsk(message: HostMessage): message is BlockAsk {
  const { type } = message;
  return type === 'readBlocks' || type === 'countBlocks' || type === 'writeBlocks';
}

const NONE: readonly bigint[] = [];

/** The worker's end of the bridge to callbacks that live in the host's thread. */
export class PortCallbacks implements LoopCallbacks {
  readonly wantsStatsJson: boolean;
  readonly #port: MessagePort;
  readonly #wantsStats: boolean;
  readonly #wantsKvEvents: boolean;
  #requests: InferenceRequest[] = [];
  #stops: bigint[] = [];
  #sequenceStops: SequenceStop[] = [];
  /** Tasks whose adapters are to be forgotten once the requests that came before are taken. */
  #forgotten: bigint[] = [];
  readonly #cacheResets: number[] = [];
  /** Resets that are to be reported. */
  readonly #resets: Extract<WorkerMessage, { type: 'cacheReset' }>[] = [];
  #blockAsks: BlockAsk[] = [];
  /** Milliseconds between two formations; 0: no client watches. */
  #watchIntervalMs = 0;
  /** When a formation with requests in flight was last reported. */
  #watchedMs = Number.NEGATIVE_INFINITY;
  /** True if something happened since the last formation was reported. */
  #isFormationStale = false;
  #received = 0;
  #reported = 0;
  #shutdownAsked = false;
  #isDraining = false;

  constructor(port: MessagePort, wants: { statsJson: boolean; stats: boolean; kvEvents: boolean }) {
    this.#port = port;
    this.wantsStatsJson = wants.statsJson;
    this.#wantsStats = wants.stats;
    this.#wantsKvEvents = wants.kvEvents;
  }

  /** True if the host asked for the end, and the loop has taken all requests sent before. */
  get shutdownAsked(): boolean {
    return this.#shutdownAsked && this.#requests.length === 0;
  }

  /** Makes the messages from now on tell the host that no more requests are taken. */
  noteDraining(): void {
    if (!this.#isDraining) this.#port.postMessage({ type: 'draining' } satisfies WorkerMessage);
    this.#isDraining = true;
  }

  /**
   * Requests from the host, as many as one iteration has time to read: the rest comes with the next calls. The host
   * keeps to the credits, so the loop's `max` is respected too.
   */
  getInferenceRequests(_max: number, arrivals: AdapterArrivals | null = null): InferenceRequest[] {
    this.#drain();
    if (this.#requests.length === 0) return [];
    const ready = arrivals?.ready(this.#requests) ?? this.#requests;
    const requests = ready.slice(0, numTaken(ready));
    const taken = new Set(requests);
    this.#requests = this.#requests.filter((request) => !taken.has(request));
    this.#received += requests.length;
    return requests;
  }

  /** True if requests have come that the loop has not taken yet. */
  get hasRequests(): boolean {
    return this.#requests.length > 0;
  }

  /**
   * Stop signals that have come, also during the iteration. A signal for a request that has not been taken yet waits
   * for it.
   */
  pollStopSignals(): Iterable<bigint> {
    this.#drain();
    if (this.#stops.length === 0) return this.#stops;
    const notTaken = new Set(this.#requests.map((request) => request.requestId));
    const now = this.#stops.filter((requestId) => !notTaken.has(requestId));
    this.#stops = this.#stops.filter((requestId) => notTaken.has(requestId));
    return now;
  }

  pollSequenceStops(): Iterable<SequenceStop> {
    this.#drain();
    if (this.#sequenceStops.length === 0) return this.#sequenceStops;
    const notTaken = new Set(this.#requests.map((request) => request.requestId));
    const now = this.#sequenceStops.filter(({ requestId }) => !notTaken.has(requestId));
    this.#sequenceStops = this.#sequenceStops.filter(({ requestId }) => notTaken.has(requestId));
    return now;
  }

  /**
   * Called between two iterations: resets the cache for each request of the host, and reports the result to the host once what lay on a
   * disk is erased too.
   */
  answerCacheResets(cache: ResettableCache): void {
    for (const askId of this.#cacheResets.splice(0)) {
      this.#resets.push({ type: 'cacheReset', askId, droppedBlocks: cache.resetCache() });
    }
    if (this.#resets.length === 0 || cache.isErasing) return;
    for (const message of this.#resets.splice(0)) this.#port.postMessage(message);
  }

  /** Called between two iterations: answers the host's questions for blocks, and those that bring some. */
  answerBlockAsks(loop: BlockSource): void {
    for (const ask of this.#blockAsks.splice(0)) {
      const { askId, prompt } = ask;
      if (ask.type === 'writeBlocks') {
        const numBlocks = loop.writeBlocks(prompt, ask.blocks);
        this.#port.postMessage({ type: 'blocksWritten', askId, numBlocks } satisfies WorkerMessage);
      } else if (ask.type === 'countBlocks') {
        const numBlocks = loop.countBlocks(prompt);
        this.#port.postMessage({ type: 'blocksCounted', askId, numBlocks } satisfies WorkerMessage);
      } else {
        const blocks = loop.readBlocks(prompt, ask.maxBytes);
        const message: WorkerMessage = { type: 'blocksRead', askId, blocks };
        this.#port.postMessage(message, [blocks.bytes.buffer]);
      }
    }
  }

  /** Called between two iterations: tasks of adapters that the host will not name again, once each. */
  takeForgottenAdapters(): readonly bigint[] {
    if (this.#forgotten.length === 0 || this.#requests.length > 0) return NONE;
    return this.#forgotten.splice(0);
  }

  /**
   * Called between two iterations: reports the requests in flight if a client watches, and at once when all
   * work has ended. The interval is that of formations with work: work that is shorter than it, with a rest
   * after each, is still seen.
   */
  reportFormation(wasBusy: boolean, nowMs: number, describe: () => EngineFormation): void {
    if (this.#watchIntervalMs === 0) return;
    if (wasBusy) this.#isFormationStale = true;
    if (!this.#isFormationStale || (wasBusy && nowMs - this.#watchedMs < this.#watchIntervalMs)) return;
    if (wasBusy) this.#watchedMs = nowMs;
    this.#isFormationStale = wasBusy;
    this.#port.postMessage({ type: 'formation', formation: describe() } satisfies WorkerMessage);
  }

  endIteration({ responses, stats, json, freePlaces, kvEvents }: IterationReport): void {
    const batch = responses.count === 0 ? null : responses.snapshot();
    const message: WorkerMessage = {
      type: 'iteration',
      responses: batch,
      json,
      stats: this.#wantsStats ? stats : null,
      freePlaces,
      received: this.#received,
      draining: this.#isDraining,
      ...(kvEvents && this.#wantsKvEvents ? { kvEvents } : {}),
    };
    this.#reported = this.#received;
    this.#port.postMessage(message, batch === null ? [] : transferables(batch));
  }

  noteTurns(turns: TurnChanges): void {
    this.#port.postMessage({ type: 'turns', turns } satisfies WorkerMessage);
  }

  /** Returns the credits of requests that left nothing to report. Called when the loop has nothing to do. */
  idle(freePlaces: number): void {
    if (this.#reported === this.#received) return;
    this.#reported = this.#received;
    this.#port.postMessage({
      type: 'iteration',
      responses: null,
      json: null,
      stats: null,
      freePlaces,
      received: this.#received,
      draining: this.#isDraining,
    } satisfies WorkerMessage);
  }

  /** Sends only the statistics, for a host whose callbacks are a module. */
  reportStats(stats: IterationStats): void {
    if (this.#wantsStats) this.#port.postMessage({ type: 'stats', stats } satisfies WorkerMessage);
  }

  /** Sends only the events of cached blocks. */
  reportKvEvents(events: KvCacheEvent[]): void {
    if (this.#wantsKvEvents) this.#port.postMessage({ type: 'kvEvents', events } satisfies WorkerMessage);
  }

  reportTaken(requestIds: bigint[]): void {
    this.#port.postMessage({ type: 'taken', requestIds } satisfies WorkerMessage);
  }

  reportAnswered(requestIds: bigint[]): void {
    this.#port.postMessage({ type: 'answered', requestIds } satisfies WorkerMessage);
  }

  reportError(error: Error): void {
    this.#port.postMessage({ type: 'error', error: recordOf(error) } satisfies WorkerMessage);
  }

  #drain(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      const message = received.message as HostMessage;
      if (message.type === 'requests') this.#requests.push(...message.requests);
      else if (message.type === 'stopSequence') this.#sequenceStops.push(message.stop);
      else if (message.type === 'stop') this.#stops.push(...message.requestIds);
      else if (message.type === 'resetCache') this.#cacheResets.push(message.askId);
      else if (isBlockAsk(message)) this.#blockAsks.push(message);
      else if (message.type === 'forgetAdapter') this.#forgotten.push(message.taskId);
      else if (message.type === 'watch') {
        this.#watchIntervalMs = message.intervalMs;
        this.#isFormationStale = true;
      } else this.#shutdownAsked = true;
    }
  }
}
