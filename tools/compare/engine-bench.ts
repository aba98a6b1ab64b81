import type {
  GptManagerOptions,
  IterationStats,
  OptionalParams,
} from '../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import type { Rates } from './peer.js';
import type { Shape } from './shapes.js';

/** The part of GptManager that is used here; the class comes from the compiled package, which can spawn its worker. */
export interface Manager {
  wake(): void;
  readonly ready: Promise<unknown>;
  shutdown(): Promise<unknown>;
}
export type ManagerClass = new (options: GptManagerOptions) => Manager;

export type EngineRates = Rates & {
  /** Share of the measured iterations' time outside the executor. */
  javascriptShare: number;
};

/**
 * Drives a manager as a host server does: callbacks in this thread, streaming responses, greedy, no end_id. The shapes
 * are those of llama-batched-bench: all prompts together, then `generate` tokens for each sequence.
 */
export class EngineBench {
  readonly #manager: Manager;
  #waiting: InferenceRequest[] = [];
  #iterations: { stats: IterationStats; arrivedMs: number }[] = [];
  #unfinished = 0;
  #finished: (() => void) | null = null;
  #failure: Error | null = null;
  #nextId = 1n;

  /** @param more options besides those of the engine */
  constructor(
    managerClass: ManagerClass,
    enginePath: string,
    params: OptionalParams,
    more: Pick<GptManagerOptions, 'ranks'> = {},
  ) {
    this.#manager = new managerClass({
      enginePath,
      modelType: 'InflightFusedBatching',
      maxBeamWidth: 1,
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      getInferenceRequests: (max) => this.#waiting.splice(0, max < 0 ? this.#waiting.length : max),
      sendResponse: (requestId, _outputs, final, error) => this.#respond(requestId, final, error),
      onIterationStats: (stats) => this.#iterations.push({ stats, arrivedMs: performance.now() }),
      onError: (error) => this.#fail(error),
      optionalParams: { enableChunkedContext: true, maxSeqLen: 2048, ...params },
      ...more,
    });
  }

  get ready(): Promise<unknown> {
    return this.#manager.ready;
  }

  shutdown(): Promise<unknown> {
    return this.#manager.shutdown();
  }

  async measure(shape: Shape): Promise<EngineRates> {
    this.#iterations = [];
    this.#unfinished = shape.sequences;
    const done = new Promise<void>((resolve) => {
      this.#finished = resolve;
    });
    const startMs = performance.now();
    for (let i = 0; i < shape.sequences; i++) this.#waiting.push(this.#request(shape));
    this.#manager.wake();
    await done;
    if (this.#failure) throw this.#failure;
    // The last iteration's statistics may come after its responses.
    await new Promise((resolve) => setTimeout(resolve, 50));
    return this.#rates(shape, startMs);
  }

  /**
   * Prefill: submission until the iteration of the last context chunk is known of here. Generation: from there, over
   * the iterations in which every sequence generates, whether in one batch or in two that take turns; wall time, so what
   * lies between iterations counts.
   */
  #rates(shape: Shape, startMs: number): EngineRates {
    const { sequences, promptTokens } = shape;
    const lastContext = this.#iterations.findLastIndex(({ stats }) => stats.contextTokens > 0);
    const prefillEnd = this.#iterations[lastContext];
    const firstEnd = this.#iterations.findIndex(({ stats }) => stats.completedRequests > 0);
    const full = this.#iterations.slice(lastContext, Math.max(firstEnd, lastContext + 1));
    const first = full[0];
    const last = full.at(-1);
    if (!prefillEnd || !first || !last || (shape.generate > 1 && full.length < 2)) {
      throw new Error(`No iteration generated for all ${sequences} sequences; generate more tokens.`);
    }
    const generationMs = last.arrivedMs - first.arrivedMs;
    const measured = full.slice(1).map(({ stats }) => stats);
    const sum = (value: (stats: IterationStats) => number) => measured.reduce((n, s) => n + value(s), 0);
    const iterationMs = sum((stats) => stats.iterationMs);
    return {
      prefillPerSecond: (1000 * sequences * promptTokens) / (prefillEnd.arrivedMs - startMs),
      generationPerSecond:
        generationMs > 0 ? (1000 * sum((stats) => stats.generatedTokens)) / generationMs : 0,
      javascriptShare: iterationMs > 0 ? 1 - sum((stats) => stats.executorMs) / iterationMs : 0,
    };
  }

  #request({ promptTokens, generate }: Shape): InferenceRequest {
    const requestId = this.#nextId++;
    // Any tokens will do; those of each request differ, as llama-batched-bench's do.
    const prompt = Int32Array.from(
      { length: promptTokens },
      (_, i) => 100 + ((Number(requestId) * 7919 + i * 131) % 20000),
    );
    return {
      requestId,
      inputs: {
        input_ids: { shape: [1, promptTokens], data: prompt },
        request_output_len: { shape: [1, 1], data: Int32Array.of(generate) },
        runtime_top_k: { shape: [1], data: Int32Array.of(1) },
        streaming: { shape: [1], data: Uint8Array.of(1) },
      },
    };
  }

  #respond(requestId: bigint, final: boolean, error: string): void {
    if (error !== '') this.#fail(new Error(`Request ${requestId}: ${error}`));
    if (final && --this.#unfinished === 0) this.#finished?.();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#finished?.();
  }
}
