import type { IterationStats } from '../engine/gpt-manager-options.js';
import type { IterationReport, LoopCallbacks } from './loop-callbacks.js';
import type { CallbackModule, InferenceRequest } from './types.js';
import { unpackResponses } from './unpack-responses.js';

/** What goes to the thread of the manager nevertheless. */
export interface ModuleHost {
  /** What the module brought: should the worker die, the next one tells the module's next life of their end. */
  reportTaken(requestIds: bigint[]): void;
  /** Requests whose final response the module is about to get. */
  reportAnswered(requestIds: bigint[]): void;
  reportError(error: Error): void;
  reportStats(stats: IterationStats): void;
}

/** Callbacks of a module that was imported into the worker: called directly, synchronously. */
export class ModuleLoopCallbacks implements LoopCallbacks {
  readonly wantsStatsJson: boolean;
  readonly #module: CallbackModule;
  readonly #maxSeqLen: number;
  readonly #host: ModuleHost;

  constructor(module: CallbackModule, maxSeqLen: number, host: ModuleHost) {
    this.#module = module;
    this.#maxSeqLen = maxSeqLen;
    this.#host = host;
    this.wantsStatsJson = module.returnBatchManagerStats !== undefined;
  }

  getInferenceRequests(max: number): readonly InferenceRequest[] {
    const requests = this.#guard('getInferenceRequests', () => this.#module.getInferenceRequests(max));
    if (requests === undefined) return [];
    if (Array.isArray(requests)) {
      const requestIds = requests.map((request) => request?.requestId).filter((id) => typeof id === 'bigint');
      if (requestIds.length > 0) this.#host.reportTaken(requestIds);
      return requests;
    }
    this.#host.reportError(
      new Error(`getInferenceRequests returned ${typeof requests}; an array is expected.`),
    );
    return [];
  }

  pollStopSignals(): Iterable<bigint> {
    const { pollStopSignals } = this.#module;
    return (pollStopSignals && this.#guard('pollStopSignals', () => new Set(pollStopSignals()))) ?? [];
  }

  endIteration({ responses, stats, json }: IterationReport): void {
    for (const { requestId, outputs, final, error } of unpackResponses(responses, this.#maxSeqLen)) {
      if (final) this.#host.reportAnswered([requestId]);
      this.#guard('sendResponse', () => this.#module.sendResponse(requestId, outputs, final, error));
    }
    const { returnBatchManagerStats } = this.#module;
    if (json !== null && returnBatchManagerStats) {
      this.#guard('returnBatchManagerStats', () => returnBatchManagerStats(json));
    }
    if (stats !== null) this.#host.reportStats(stats);
  }

  /** Final responses for requests of the module's life before, whose worker died. */
  failLost(requestIds: readonly bigint[], reason: string): void {
    for (const requestId of requestIds) {
      this.#host.reportAnswered([requestId]);
      this.#guard('sendResponse', () => this.#module.sendResponse(requestId, [], true, reason));
    }
  }

  reportError(error: Error): void {
    this.#host.reportError(error);
  }

  /** A callback that throws is reported; the loop and the other callbacks go on. */
  #guard<T>(name: string, call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#host.reportError(new Error(`The callback ${name} threw: ${reason}`, { cause: error }));
      return undefined;
    }
  }
}

/** The callbacks that a module exports. Throws, naming what is missing. */
export function callbacksOfModule(exports: Record<string, unknown>, url: string): CallbackModule {
  for (const name of ['getInferenceRequests', 'sendResponse']) {
    if (typeof exports[name] !== 'function') {
      throw new Error(`The callback module ${url} does not export the function ${name}, which is required.`);
    }
  }
  for (const name of ['pollStopSignals', 'returnBatchManagerStats']) {
    if (exports[name] !== undefined && typeof exports[name] !== 'function') {
      throw new Error(
        `The callback module ${url} exports ${name} as ${typeof exports[name]}; a function is expected.`,
      );
    }
  }
  return exports as unknown as CallbackModule;
}
