import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { HostBridge } from '../callbacks/host-bridge.js';
import {
  Doorbell,
  type EngineInfo,
  type HostMessage,
  type WorkerMessage,
} from '../callbacks/worker-messages.js';
import { checkRange, ParameterError } from './decoding/sampling-params.js';
import { checkOptionalParams, DEFAULT_IDLE_POLL_INTERVAL_MS } from './engine-limits.js';
import type { WorkerData } from './generation-worker.js';
import type { FunctionCallbacks, GptManagerOptions, IterationStats } from './gpt-manager-options.js';

/**
 * starting: the engine is loading. running. draining: no more requests are taken, active ones go on.
 * stopped: ended as asked. failed: it could not be loaded, or the worker died.
 */
export type ManagerState = 'starting' | 'running' | 'draining' | 'stopped' | 'failed';

/**
 * Runs the token generation loop in a worker thread that its constructor spawns. The callbacks bring requests in and
 * take responses out; see GptManagerOptions for where they run.
 *
 *   const manager = new GptManager({ enginePath, modelType: 'InflightFusedBatching', maxBeamWidth: 1,
 *     schedulerPolicy: 'GUARANTEED_NO_EVICT', getInferenceRequests, sendResponse });
 *   await manager.ready;
 *   ...
 *   await manager.shutdown();
 */
export class GptManager {
  /** Settles when the engine is loaded; rejects with the reason where it cannot be. */
  readonly ready: Promise<EngineInfo>;
  /** Resolves when the worker thread is gone, for whatever reason: see state and failure. */
  readonly ended: Promise<void>;
  readonly #options: GptManagerOptions;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #doorbell: Doorbell;
  #state: ManagerState = 'starting';
  #bridge: HostBridge | null = null;
  #failure: Error | null = null;
  #resolveReady!: (info: EngineInfo) => void;
  #rejectReady!: (error: Error) => void;
  #resolveEnded!: () => void;

  /** Throws a ParameterError for options that cannot work; what only loading can show rejects `ready`. */
  constructor(options: GptManagerOptions) {
    checkOptions(options);
    this.#options = options;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {}); // whoever awaits it hears of it; nobody has to
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const { port1, port2 } = new MessageChannel();
    const buffer = Doorbell.createBuffer();
    this.#port = port1;
    this.#doorbell = new Doorbell(buffer);
    this.#worker = new Worker(new URL('./generation-worker.js', import.meta.url), {
      workerData: workerDataOf(options, port2, buffer),
      transferList: [port2],
      name: 'skein-engine',
    });
    this.#port.on('message', (message: WorkerMessage) => this.#handle(message));
    this.#worker.on('error', (error) => {
      this.#handleWhatIsLeft();
      this.#fail(errorOf(error));
    });
    this.#worker.on('exit', (code) => this.#handleExit(code));
  }

  get state(): ManagerState {
    return this.#state;
  }

  /** Why the state is 'failed'; null in every other state. */
  get failure(): Error | null {
    return this.#failure;
  }

  /** Requests given to the worker whose final response has not come (0 with callbacks in a module). */
  get numInFlight(): number {
    return this.#bridge?.numInFlight ?? 0;
  }

  /** "I may have new requests or stop signals": the callbacks are asked at once instead of at the next poll. */
  wake(): void {
    this.#bridge?.wake();
  }

  /**
   * Takes no more requests and resolves once the active ones have ended and the worker is gone. Calling it again
   * gives the same promise. After a failure it resolves too: there is nothing left to end.
   */
  shutdown(): Promise<void> {
    if (this.#state === 'starting' || this.#state === 'running') {
      this.#state = 'draining';
      this.#bridge?.stopTaking();
      this.#post({ type: 'shutdown' });
    }
    return this.ended;
  }

  #handle(message: WorkerMessage): void {
    switch (message.type) {
      case 'ready':
        this.#start(message.info);
        break;
      case 'iteration':
        this.#bridge?.handleIteration(message);
        break;
      case 'stats':
        this.#reportStats(message.stats);
        break;
      case 'error':
        this.#report(new Error(message.message));
        break;
      case 'closed':
        this.#stop();
        break;
    }
  }

  #start(info: EngineInfo): void {
    const isRunning = this.#state === 'starting';
    if (isRunning) this.#state = 'running';
    if (this.#options.callbackModule === undefined) {
      this.#bridge = this.#createBridge(this.#options, info);
      if (isRunning) this.#bridge.wake();
      else this.#bridge.stopTaking();
    }
    this.#resolveReady(info);
  }

  #createBridge(callbacks: FunctionCallbacks, info: EngineInfo): HostBridge {
    return new HostBridge({
      port: this.#port,
      doorbell: this.#doorbell,
      callbacks,
      maxSeqLen: info.maxSeqLen,
      maxNumSequences: info.maxNumSequences,
      idlePollIntervalMs: this.#options.optionalParams?.idlePollIntervalMs ?? DEFAULT_IDLE_POLL_INTERVAL_MS,
      onError: (error) => this.#report(error),
      onIterationStats: this.#options.onIterationStats,
      onKvCacheEvents: this.#options.onKvCacheEvents,
    });
  }

  #handleExit(code: number): void {
    this.#handleWhatIsLeft();
    this.#fail(new Error(`The engine's worker thread ended unexpectedly with exit code ${code}.`));
    this.#port.close();
    this.#resolveEnded();
  }

  /** The worker's last messages may still lie in the port when its end is announced. */
  #handleWhatIsLeft(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      this.#handle(received.message as WorkerMessage);
    }
  }

  #stop(): void {
    this.#state = 'stopped';
    this.#bridge?.failAll('The manager was shut down before this request was taken.');
  }

  /** The worker is gone and with it all its requests. (A restart with back-off belongs here.) */
  #fail(error: Error): void {
    if (this.#state === 'failed' || this.#state === 'stopped') return;
    const wasStarting = this.#bridge === null;
    this.#state = 'failed';
    this.#failure = error;
    this.#bridge?.failAll(`The engine failed: ${error.message}`);
    this.#rejectReady(error);
    if (!wasStarting) this.#report(error);
  }

  /** With callbacks in a module; otherwise the bridge does it in its order with the other callbacks. */
  #reportStats(stats: IterationStats): void {
    try {
      this.#options.onIterationStats?.(stats);
    } catch (error) {
      this.#report(
        new Error(`The callback onIterationStats failed: ${errorOf(error).message}`, { cause: error }),
      );
    }
  }

  #report(error: Error): void {
    const { onError } = this.#options;
    if (!onError) {
      process.emitWarning(error.message, 'SkeinWarning');
      return;
    }
    try {
      onError(error);
    } catch (thrown) {
      process.emitWarning(`onError threw: ${errorOf(thrown).message}`, 'SkeinWarning');
    }
  }

  #post(message: HostMessage): void {
    this.#port.postMessage(message);
    this.#doorbell.ring();
  }
}

function workerDataOf(
  options: GptManagerOptions,
  port: MessagePort,
  doorbell: SharedArrayBuffer,
): WorkerData {
  const { executorModule, ...params } = options.optionalParams ?? {};
  return {
    enginePath: options.enginePath,
    modelType: options.modelType,
    schedulerPolicy: options.schedulerPolicy,
    maxBeamWidth: options.maxBeamWidth,
    params,
    executorModule: executorModule === undefined ? null : String(executorModule),
    callbackModule: options.callbackModule === undefined ? null : String(options.callbackModule),
    terminateReqId: options.terminateReqId ?? null,
    wants: {
      statsJson: options.returnBatchManagerStats !== undefined,
      stats: options.onIterationStats !== undefined,
    },
    port,
    doorbell,
  };
}

function checkOptions(options: GptManagerOptions): void {
  const { enginePath, modelType, maxBeamWidth, schedulerPolicy } = options;
  if (typeof enginePath !== 'string' || enginePath === '') {
    throw new ParameterError(
      'enginePath',
      'enginePath is missing; it must be the path of an engine directory.',
    );
  }
  if (modelType !== 'V1' && modelType !== 'InflightBatching' && modelType !== 'InflightFusedBatching') {
    throw new ParameterError(
      'modelType',
      `modelType is ${String(modelType)}; it must be V1, InflightBatching or InflightFusedBatching.`,
    );
  }
  checkRange('maxBeamWidth', maxBeamWidth, { min: 1, max: 1024, integer: true });
  if (maxBeamWidth > 1) {
    throw new ParameterError(
      'maxBeamWidth',
      `maxBeamWidth is ${maxBeamWidth}; beam search is not supported yet, so it must be 1.`,
    );
  }
  if (schedulerPolicy !== 'MAX_UTILIZATION' && schedulerPolicy !== 'GUARANTEED_NO_EVICT') {
    throw new ParameterError(
      'schedulerPolicy',
      `schedulerPolicy is ${String(schedulerPolicy)}; it must be MAX_UTILIZATION or GUARANTEED_NO_EVICT.`,
    );
  }
  checkCallbacks(options);
  checkOptionalParams(options.optionalParams ?? {}, modelType);
}

function checkCallbacks(options: GptManagerOptions): void {
  if (options.callbackModule !== undefined) {
    for (const name of [
      'getInferenceRequests',
      'sendResponse',
      'pollStopSignals',
      'returnBatchManagerStats',
    ] as const) {
      if (options[name] === undefined) continue;
      throw new ParameterError(
        name,
        `${name} is given beside callbackModule; give functions or a module, not both.`,
      );
    }
    return;
  }
  for (const name of ['getInferenceRequests', 'sendResponse'] as const) {
    if (typeof options[name] === 'function') continue;
    throw new ParameterError(name, `${name} is missing; it must be a function (or give callbackModule).`);
  }
}

function errorOf(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}
