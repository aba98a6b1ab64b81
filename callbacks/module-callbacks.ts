import type { IterationReport, LoopCallbacks } from './loop-callbacks.js';
import type { CallbackModule, InferenceRequest } from './types.js';
import { unpackResponses } from './unpack-responses.js';

/** Callbacks of a module that was imported into the worker: called directly, synchronously. */
export class ModuleLoopCallbacks implements LoopCallbacks {
  readonly wantsStatsJson: boolean;
  readonly #module: CallbackModule;
  readonly #maxSeqLen: number;
  readonly #onError: (error: Error) => void;

  constructor(module: CallbackModule, maxSeqLen: number, onError: (error: Error) => void) {
    this.#module = module;
    this.#maxSeqLen = maxSeqLen;
    this.#onError = onError;
    this.wantsStatsJson = module.returnBatchManagerStats !== undefined;
  }

  getInferenceRequests(max: number): readonly InferenceRequest[] {
    const requests = this.#guard('getInferenceRequests', () => this.#module.getInferenceRequests(max));
    if (requests === undefined) return [];
    if (Array.isArray(requests)) return requests;
    this.#onError(new Error(`getInferenceRequests returned ${typeof requests}; an array is expected.`));
    return [];
  }

  pollStopSignals(): Iterable<bigint> {
    const { pollStopSignals } = this.#module;
    return (pollStopSignals && this.#guard('pollStopSignals', () => new Set(pollStopSignals()))) ?? [];
  }

  endIteration({ responses, json }: IterationReport): void {
    for (const { requestId, outputs, final, error } of unpackResponses(responses, this.#maxSeqLen)) {
      this.#guard('sendResponse', () => this.#module.sendResponse(requestId, outputs, final, error));
    }
    const { returnBatchManagerStats } = this.#module;
    if (json !== null && returnBatchManagerStats) {
      this.#guard('returnBatchManagerStats', () => returnBatchManagerStats(json));
    }
  }

  reportError(error: Error): void {
    this.#onError(error);
  }

  /** A callback that throws is reported; the loop and the other callbacks go on. */
  #guard<T>(name: string, call: () => T): T | undefined {
    try {
      return call();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#onError(new Error(`The callback ${name} threw: ${reason}`, { cause: error }));
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
