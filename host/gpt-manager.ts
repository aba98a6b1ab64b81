import { errorOf } from '../base/error-record.js';
import type { EngineFormation } from '../callbacks/formation.js';
import type { FunctionCallbacks, GptManagerOptions, ManagerState } from '../callbacks/gpt-manager-options.js';
import {
  DEFAULT_IDLE_POLL_INTERVAL_MS,
  DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS,
  DEFAULT_TERMINATE_TIMEOUT_MS,
  DEFAULT_WATCHDOG_TIMEOUT_MS,
} from '../callbacks/options/optional-params.js';
import { failure } from '../callbacks/request-failure.js';
import type { WorkerData, WorkerWires } from '../callbacks/worker-data.js';
import type {
  BlockContents,
  EngineInfo,
  HostMessage,
  OfferedBlocks,
  WorkerMessage,
} from '../callbacks/worker-messages.js';
import { checkManagerOptions } from '../engine/options/check-manager-options.js';
import { generationWorkerScript } from '../engine/worker/worker-script.js';
import type { PromptBlocks } from '../kvcache/block-hashes.js';
import { withOwnClass } from './engine-failure.js';
import { HostBridge, type InProcessCalls } from './host-bridge.js';
import { openLink } from './links/open-link.js';
import type { WorkerLink } from './links/worker-link.js';
import { LostRequests } from './lost-requests.js';
import { ManagerLife } from './manager-life.js';
import { PendingAsks } from './pending-asks.js';
import { FunctionsOfHost } from './post-processor-functions.js';
import type { OpenLeader } from './ranks/launched-ranks.js';
import { ManagerRanks } from './ranks/open-group.js';
import { WorkerSupervisor } from './worker-supervisor.js';

type RunMessage = Exclude<WorkerMessage, { type: 'ready' }>;
type GenerationWorker = WorkerLink<HostMessage>;

/**
 * Runs the token generation loop in a worker that its constructor starts: a thread, or with optionalParams.isolate a process. The callbacks bring requests in and
 * take responses out; see GptManagerOptions for where they run.
 *
 *   const manager = new GptManager({ enginePath, modelType: 'InflightFusedBatching', maxBeamWidth: 1,
 *     schedulerPolicy: 'GUARANTEED_NO_EVICT', getInferenceRequests, sendResponse });
 *   await manager.ready;
 *   ...
 *   await manager.shutdown();
 *
 * A worker that dies, or that the watchdog finds stuck, takes its requests with it: each gets one final response with
 * the reason, and another worker is started (OptionalParams.workerRestart). Meanwhile no callback is called.
 */
export class GptManager {
  readonly #life: ManagerLife<EngineInfo>;
  readonly #options: GptManagerOptions;
  readonly #inProcess: InProcessCalls | undefined;
  readonly #supervisor: WorkerSupervisor<EngineInfo, RunMessage, HostMessage>;
  /** Requests of a callback module that the worker has. */
  readonly #moduleRequests = new LostRequests();
  readonly #cacheResets = new PendingAsks(0, 'The cache was not reset');
  readonly #blockReads = new PendingAsks<BlockContents>(
    { numBlocks: 0, bytes: new Uint8Array(0) },
    'The blocks were not read',
  );
  readonly #blockCounts = new PendingAsks(0, 'The blocks were not counted');
  readonly #blockWrites = new PendingAsks(0, 'The blocks were not written');
  readonly #ranks: ManagerRanks;
  /** null: there are none. */
  readonly #functions: FunctionsOfHost | null;
  #watch: { listener: (formation: EngineFormation) => void; intervalMs: number } | null = null;
  #bridge: HostBridge | null = null;
  /** Of the latest worker that was loaded. */
  #info: EngineInfo | null = null;
  #terminateReason: string | null = null;

  /**
   * Throws a ParameterError for options that cannot work; what only loading can show rejects `ready`.
   * @param inProcess what the in-process host receives besides its callbacks, which are functions
   */
  constructor(options: GptManagerOptions, inProcess?: InProcessCalls) {
    checkManagerOptions(options);
    this.#options = options;
    this.#life = new ManagerLife(options);
    this.#inProcess = inProcess;
    this.#functions = functionsOf(options);
    this.#ranks = new ManagerRanks(options, (error) => this.#life.report(error));
    const {
      isolate = false,
      workerRestart,
      watchdogTimeoutMs = DEFAULT_WATCHDOG_TIMEOUT_MS,
      terminateTimeoutMs,
    } = options.optionalParams ?? {};
    this.#supervisor = new WorkerSupervisor<EngineInfo, RunMessage, HostMessage>({
      link: (events) => {
        const data = { ...workerDataOf(options), lost: this.#moduleRequests.take() };
        const open: OpenLeader<WorkerMessage, HostMessage> = (seat, ofWorker) => {
          const hostPostProcessors = this.#functions?.open() ?? null;
          const ports = hostPostProcessors === null ? [] : [hostPostProcessors.port];
          const whole = { ...data, seat, hostPostProcessors };
          return openLink(generationWorkerScript(), whole, ofWorker, { isolate, watchdogTimeoutMs, ports });
        };
        return this.#ranks.open(events, open);
      },
      restart: workerRestart ?? {},
      watchdogTimeoutMs,
      terminateTimeoutMs: terminateTimeoutMs ?? DEFAULT_TERMINATE_TIMEOUT_MS,
      isAwaited: () => this.numInFlight > 0,
      onReady: (worker, info) => this.#start(worker, info),
      onMessage: (message) => this.#handle(message),
      onLost: (error) => this.#lose(error),
      onEnded: (error) => this.#end(error),
    });
  }

  /** Settles when the engine is loaded for the first time; rejects with the reason where it cannot be. */
  get ready(): Promise<EngineInfo> {
    return this.#life.ready;
  }

  /** Resolves when no worker runs and none will, for whatever reason: see state and failure. */
  get ended(): Promise<void> {
    return this.#life.ended;
  }

  get state(): ManagerState {
    return this.#life.state;
  }

  /** Why the state is 'failed' or 'restarting'; null in every other state. */
  get failure(): Error | null {
    return this.#life.failure;
  }

  /**
   * Properties of the engine as it runs, or ran last: another worker may use another executor. null: it is not loaded
   * yet.
   */
  get info(): EngineInfo | null {
    return this.#info;
  }

  /** Workers started after the first one. */
  get restarts(): number {
    return this.#supervisor.restarts;
  }

  /**
   * Id of the engine's process, with optionalParams.isolate; null while there is none, and where the engine is a
   * thread.
   */
  get pid(): number | null {
    return this.#supervisor.pid;
  }

  /** Number of requests given to the worker whose final response has not come (0 with callbacks in a module). */
  get numInFlight(): number {
    return this.#bridge?.numInFlight ?? 0;
  }

  /** Asks the callbacks for requests and stop signals at once instead of at the next poll. */
  wake(): void {
    this.#bridge?.wake();
  }

  /**
   * Ends one sequence of a request that asked for several (num_return_sequences, best_of not above it), by
   * its sequence_index; the others continue. Unknown ids are ignored. Not with a callbackModule.
   */
  stopSequence(requestId: bigint, sequenceIndex: number): void {
    this.#bridge?.stopSequence(requestId, sequenceIndex);
  }

  /**
   * Calls `listener` with the requests in flight, at most once in `intervalMs` while iterations run, and once more when
   * all have ended; null ends it. There is one listener; without one no formation is made.
   */
  watchFormation(listener: ((formation: EngineFormation) => void) | null, intervalMs = 200): void {
    this.#watch = listener === null ? null : { listener, intervalMs: Math.max(1, intervalMs) };
    this.#supervisor.post({ type: 'watch', intervalMs: this.#watch?.intervalMs ?? 0 });
  }

  /**
   * Forgets, between two iterations, every block of the KV cache that later requests could reuse, and
   * resolves with the number of these blocks. Running requests keep their blocks, but no other request finds
   * them. Resolves with 0 while no worker runs: the next one begins with an empty cache. Rejects if the
   * worker dies before it answers.
   */
  resetCache(): Promise<number> {
    return this.#cacheResets.ask((askId) => this.#supervisor.post({ type: 'resetCache', askId }));
  }

  /**
   * Reads, between two iterations, the content of the cached full blocks that another engine could use of a
   * prompt: of as many, from the start on, as fit into `maxBytes`. After them come the states, where the
   * model has some: blocks then count only up to the last one that has a snapshot. Empty where there are
   * none, without block reuse, with enableTrtOverlap while a step runs, and with an executor that gives none.
   * Rejects if the worker dies before it answers.
   */
  readBlocks(prompt: PromptBlocks, maxBytes: number): Promise<BlockContents> {
    return this.#blockReads.ask((askId) =>
      this.#supervisor.post({ type: 'readBlocks', askId, prompt, maxBytes }),
    );
  }

  /**
   * Resolves with the number of full blocks, from the start of the prompt on, that writeBlocks need not
   * bring: the cache has them, and the states after them. Some may be evicted before they are used. 0 where
   * readBlocks gives none. Rejects if the worker dies before it answers.
   */
  countBlocks(prompt: PromptBlocks): Promise<number> {
    return this.#blockCounts.ask((askId) => this.#supervisor.post({ type: 'countBlocks', askId, prompt }));
  }

  /**
   * Makes, between two iterations, what readBlocks of an equal engine gave cached blocks of this one: full blocks of the
   * prompt, in parts where they are many. The engines must have the same model, precision, KV type, tokens per block, executor
   * and instruction set. Resolves with the number of these blocks that the cache has now.
   */
  writeBlocks(prompt: PromptBlocks, blocks: OfferedBlocks): Promise<number> {
    return this.#blockWrites.ask((askId) =>
      this.#supervisor.post({ type: 'writeBlocks', askId, prompt, blocks }),
    );
  }

  /**
   * Says that no request will name this task's LoRA adapter again: it leaves the caches once none uses it. A
   * later request of the task brings its weights again.
   */
  forgetAdapter(taskId: bigint): void {
    this.#supervisor.post({ type: 'forgetAdapter', taskId });
  }

  /**
   * Takes no more requests and resolves once the active ones have ended and the worker is gone. Further calls return
   * the same promise. It resolves after a failure too: there is nothing left to end.
   */
  shutdown(): Promise<void> {
    if (this.#stopTaking()) this.#supervisor.shutdown();
    return this.ended;
  }

  /** The same as `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /**
   * Ends at once: active requests get a final response with this reason. Resolves when the worker is gone, or when it
   * did not end within terminateTimeoutMs because it is in a native call: then the state is 'failed'.
   */
  terminate(reason = 'The manager was terminated.'): Promise<void> {
    this.#stopTaking();
    this.#terminateReason = reason;
    this.#supervisor.terminate(reason);
    return this.ended;
  }

  /** Stops taking requests. Returns false if that was done before. */
  #stopTaking(): boolean {
    if (this.state !== 'starting' && this.state !== 'running' && this.state !== 'restarting') return false;
    this.#bridge?.stopTaking();
    this.#life.setState('draining', null);
    return true;
  }

  #handle(message: RunMessage): void {
    switch (message.type) {
      case 'iteration':
        this.#bridge?.handleIteration(message);
        break;
      case 'turns':
        this.#bridge?.noteTurns(message.turns);
        break;
      // These two come here with callbacks in a module; otherwise the bridge handles them in order with the other
      // callbacks.
      case 'stats':
        this.#life.tell('onIterationStats', () => this.#options.onIterationStats?.(message.stats));
        break;
      case 'kvEvents':
        this.#life.tell('onKvCacheEvents', () => this.#options.onKvCacheEvents?.(message.events));
        break;
      case 'taken':
        this.#moduleRequests.add(message.requestIds);
        break;
      case 'answered':
        this.#moduleRequests.remove(message.requestIds);
        break;
      case 'cacheReset':
        this.#cacheResets.settle(message.askId, message.droppedBlocks);
        break;
      case 'blocksRead':
        this.#blockReads.settle(message.askId, message.blocks);
        break;
      case 'blocksCounted':
        this.#blockCounts.settle(message.askId, message.numBlocks);
        break;
      case 'blocksWritten':
        this.#blockWrites.settle(message.askId, message.numBlocks);
        break;
      case 'formation':
        this.#life.tell('watchFormation', () => this.#watch?.listener(message.formation));
        break;
      case 'error':
        this.#life.report(withOwnClass(errorOf(message.error)));
        break;
      case 'draining':
        if (this.state === 'running') void this.shutdown();
        break;
      case 'closed':
        this.#bridge?.failAll(failure('ended', 'The manager was shut down before this request was taken.'));
        this.#life.setState('stopped', null);
        break;
    }
  }

  #start(worker: GenerationWorker, info: EngineInfo): void {
    this.#info = info;
    const isOpen = this.state === 'starting' || this.state === 'restarting';
    if (isOpen) this.#life.setState('running', null);
    if (this.#options.callbackModule === undefined && !this.#ranks.follows) {
      if (this.#bridge === null) this.#bridge = this.#createBridge(this.#options, worker, info);
      else this.#bridge.connect(worker);
      if (isOpen) this.#bridge.wake();
      else this.#bridge.stopTaking();
    }
    if (this.#watch !== null) worker.post({ type: 'watch', intervalMs: this.#watch.intervalMs });
    this.#life.noteReady(info);
  }

  #createBridge(callbacks: FunctionCallbacks, worker: GenerationWorker, info: EngineInfo): HostBridge {
    return new HostBridge({
      connection: worker,
      callbacks: this.#ranks.callbacksOf(callbacks),
      inProcess: this.#inProcess,
      maxSeqLen: info.maxSeqLen,
      maxNumSequences: info.maxNumSequences,
      maxWaitingRequests: this.#options.optionalParams?.maxWaitingRequests,
      idlePollIntervalMs: this.#options.optionalParams?.idlePollIntervalMs ?? DEFAULT_IDLE_POLL_INTERVAL_MS,
      terminateReqId: this.#options.terminateReqId,
      onTerminate: () => void this.shutdown(),
      onError: (error) => this.#life.report(error),
      onIterationStats: this.#options.onIterationStats,
      onKvCacheEvents: this.#options.onKvCacheEvents,
    });
  }

  /** Handles the loss of the worker and with it of all its requests. */
  #lose(error: Error): void {
    const reason = this.#terminateReason ?? `The engine failed: ${error.message}`;
    this.#moduleRequests.fail(reason);
    this.#failAsks(reason);
    if (this.state === 'running' || this.state === 'restarting') this.#life.setState('restarting', error);
    this.#bridge?.disconnect(failure(this.#terminateReason === null ? 'internal' : 'ended', reason));
    if (this.#info !== null && this.#terminateReason === null) this.#life.report(error);
  }

  #end(error: Error | null): void {
    const isKnown = error === this.failure || this.#info === null;
    this.#life.noteEnded(error, 'The manager was shut down before the engine was loaded.');
    if (error !== null && !isKnown) this.#life.report(error);
    this.#bridge?.failAll(
      error === null
        ? failure('ended', 'The manager was shut down.')
        : failure('internal', `The engine failed: ${error.message}`),
    );
    this.#failAsks('The manager was shut down.');
  }

  #failAsks(reason: string): void {
    const all = [this.#cacheResets, this.#blockReads, this.#blockCounts, this.#blockWrites];
    for (const asks of all) asks.failAll(reason);
  }
}

function functionsOf(options: GptManagerOptions): FunctionsOfHost | null {
  const { logitsPostProcessors = {}, logitsPostProcessorBatched: batched } = options;
  if (Object.keys(logitsPostProcessors).length === 0 && batched === undefined) return null;
  const { logitsPostProcessorTimeoutMs = DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS } =
    options.optionalParams ?? {};
  return new FunctionsOfHost(logitsPostProcessors, batched, logitsPostProcessorTimeoutMs);
}

function workerDataOf(
  options: GptManagerOptions,
): Omit<WorkerData, keyof WorkerWires | 'lost' | 'seat' | 'hostPostProcessors'> {
  const { executorModule, logitsPostProcessorModule, ...params } = options.optionalParams ?? {};
  return {
    enginePath: options.enginePath,
    modelType: options.modelType,
    schedulerPolicy: options.schedulerPolicy,
    maxBeamWidth: options.maxBeamWidth,
    params,
    executorModule: urlOf(executorModule),
    logitsPostProcessorModule: urlOf(logitsPostProcessorModule),
    callbackModule: urlOf(options.callbackModule),
    terminateReqId: options.terminateReqId ?? null,
    wants: {
      statsJson: options.returnBatchManagerStats !== undefined,
      stats: options.onIterationStats !== undefined,
      kvEvents: options.onKvCacheEvents !== undefined,
    },
  };
}

function urlOf(module: string | URL | undefined): string | null {
  return module === undefined ? null : String(module);
}
