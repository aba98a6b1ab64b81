import {
  type FunctionCallbacks,
  GptManager,
  type GptManagerOptions,
  type InferenceRequest,
  type ManagerState,
} from 'skein';
import type { Response } from '../../callbacks/unpack-responses.js';

/** A client of a GptManager with functions as callbacks: a queue, and everything that was answered. */
export class ManagerClient implements FunctionCallbacks {
  readonly waiting: InferenceRequest[] = [];
  readonly stops = new Set<bigint>();
  readonly responses = new Map<bigint, Response[]>();
  /** Ids in the order of their final responses. */
  readonly finals: bigint[] = [];
  readonly states: [ManagerState, string | null][] = [];
  readonly errors: string[] = [];
  readonly stats: string[] = [];
  readonly manager: GptManager;
  readonly #onFinal = new Map<bigint, () => void>();

  constructor(options: Partial<GptManagerOptions>) {
    this.manager = new GptManager({
      getInferenceRequests: (max) => this.getInferenceRequests(max),
      sendResponse: (requestId, outputs, final, error) => this.sendResponse(requestId, outputs, final, error),
      pollStopSignals: () => new Set([...this.stops].filter((id) => this.stops.delete(id))),
      returnBatchManagerStats: (json) => {
        this.stats.push(json);
      },
      onStateChange: (state, failure) => this.states.push([state, failure?.message ?? null]),
      onError: (error) => this.errors.push(error.message),
      ...options,
    } as GptManagerOptions);
  }

  getInferenceRequests(max: number): InferenceRequest[] {
    return this.waiting.splice(0, max);
  }

  /** Throws, which the manager reports as an error, for a response after the final one. */
  sendResponse(requestId: bigint, outputs: Response['outputs'], final: boolean, error: string): void {
    const list = this.responses.get(requestId) ?? [];
    this.responses.set(requestId, list);
    if (list.at(-1)?.final) throw new Error(`a response for ${requestId} after its final one`);
    list.push({ requestId, outputs, final, error });
    if (!final) return;
    this.finals.push(requestId);
    this.#onFinal.get(requestId)?.();
  }

  /** Resolves with the final response. */
  submit(request: InferenceRequest): Promise<void> {
    const done = new Promise<void>((resolve) => this.#onFinal.set(request.requestId, resolve));
    this.waiting.push(request);
    this.manager.wake();
    return done;
  }
}
