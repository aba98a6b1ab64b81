import type { InferenceRequest } from '../../../callbacks/types.js';
import { Random } from '../../support/random.js';

export interface WorkloadOptions {
  requests: number;
  /** Arrivals a second, on average. */
  rate: number;
  /** Shortest and longest prompt; every length between is as likely. */
  promptTokens: readonly [number, number];
  /** Mean number of generated tokens; exponential, at least 1 and at most four times the mean. */
  newTokens: number;
  vocabSize: number;
  seed: number;
}

export interface Arrival {
  /** Milliseconds after the start. */
  atMs: number;
  request: InferenceRequest;
}

/** Requests of a Poisson process. The same seed gives the same requests; the rate only stretches their arrivals. */
export function poissonArrivals(options: WorkloadOptions): Arrival[] {
  const random = new Random(options.seed);
  const exponential = () => -Math.log(1 - random.uniform());
  const [shortest, longest] = options.promptTokens;
  let atMs = 0;
  return Array.from({ length: options.requests }, (_, index) => {
    atMs += (1000 * exponential()) / options.rate;
    const promptLength = shortest + random.below(longest - shortest + 1);
    const prompt = Int32Array.from({ length: promptLength }, () => random.below(options.vocabSize));
    const newTokens = Math.ceil(options.newTokens * Math.min(4, exponential()));
    const request: InferenceRequest = {
      requestId: BigInt(index),
      inputs: {
        input_ids: { shape: [1, promptLength], data: prompt },
        request_output_len: { shape: [1, 1], data: Int32Array.of(Math.max(1, newTokens)) },
        streaming: { shape: [1], data: Uint8Array.of(1) },
      },
    };
    return { atMs, request };
  });
}

/** Longest sequence that a workload can hold. */
export function longestSequence({ promptTokens, newTokens }: WorkloadOptions): number {
  return promptTokens[1] + Math.ceil(4 * newTokens);
}
