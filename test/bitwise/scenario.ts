import { expect } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';

/** A request and the iteration before which it arrives. */
export interface Arrival {
  iteration: number;
  request: InferenceRequest;
}

export interface ScenarioLimits {
  vocabSize: number;
  requests: number;
  maxPrompt: number;
  maxNew: number;
  /** Iterations over which the requests arrive. */
  arrivalSpan: number;
  seed: number;
  /** Prompts are beginnings of a few long ones, or leave them somewhere. */
  sharedPrompts?: boolean;
  /** Every second request has its generation logits returned; every third what the prompt was worth, or its logits. */
  returnsLogits?: boolean;
}

/** Mulberry32: numbers in [0, 1) that are the same on every machine. */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Requests of random lengths, arrivals and sampling parameters; ids from 1. Each returns its log-probs. */
export function randomScenario(limits: ScenarioLimits): Arrival[] {
  const random = randomNumbers(limits.seed);
  const more = randomNumbers(limits.seed + 1);
  const integer = (min: number, max: number) => min + Math.floor(random() * (max - min + 1));
  const stems = Array.from({ length: limits.sharedPrompts ? 3 : 0 }, () =>
    Int32Array.from({ length: limits.maxPrompt }, () => integer(3, limits.vocabSize - 1)),
  );
  return Array.from({ length: limits.requests }, (_, index) => {
    const promptLength = integer(1, limits.maxPrompt);
    const prompt = Int32Array.from({ length: promptLength }, () => integer(3, limits.vocabSize - 1));
    if (limits.sharedPrompts) {
      const stem = stems[index % stems.length]!;
      prompt.set(stem.subarray(0, Math.min(promptLength, integer(promptLength >> 1, 2 * promptLength))));
    }
    const maxNew = integer(1, limits.maxNew);
    const inputs: Record<string, Tensor> = {
      input_ids: { shape: [1, promptLength], data: prompt },
      request_output_len: oneInt(maxNew),
      return_log_probs: { shape: [1], data: Uint8Array.of(1) },
      streaming: { shape: [1], data: Uint8Array.of(index % 2) },
      ...samplingOf(index, random),
      ...furtherSamplingOf(index, limits.vocabSize, maxNew, more),
      ...(limits.returnsLogits ? returnsOf(index) : {}),
    };
    const iteration = integer(0, limits.arrivalSpan);
    return { iteration, request: { requestId: BigInt(index + 1), inputs } };
  });
}

function returnsOf(index: number): Record<string, Tensor> {
  const on = { shape: [1], data: Uint8Array.of(1) };
  const generation: Record<string, Tensor> = index % 2 === 0 ? { return_generation_logits: on } : {};
  if (index % 6 === 0) return { ...generation, return_context_logits: on, return_context_log_probs: on };
  return index % 3 === 0 ? { ...generation, return_context_log_probs: on } : generation;
}

/** Every fourth request is greedy; the others use one truncation or penalty after the other. */
function samplingOf(index: number, random: () => number): Record<string, Tensor> {
  const seed = BigInt(Math.floor(random() * 2 ** 32));
  const inputs: Record<string, Tensor> = { random_seed: { shape: [1], data: BigUint64Array.of(seed) } };
  if (index % 4 === 0) return inputs;
  inputs.temperature = oneFloat(0.5 + random());
  if (index % 4 === 1) inputs.runtime_top_k = oneInt(1 + Math.floor(random() * 40));
  if (index % 4 === 2) inputs.runtime_top_p = oneFloat(0.3 + 0.7 * random());
  if (index % 3 === 0) inputs.repetition_penalty = oneFloat(1.2);
  if (index % 3 === 1) inputs.presence_penalty = oneFloat(0.4);
  if (index % 5 === 0) inputs.frequency_penalty = oneFloat(0.3);
  return inputs;
}

/**
 * min-p and penalties on top of the other truncations, and min_length: a part of the vocabulary, often drawn, ends the
 * request, but not before that.
 */
function furtherSamplingOf(
  index: number,
  vocabSize: number,
  maxNew: number,
  random: () => number,
): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  if (index % 4 === 3 || index % 8 === 1) inputs.runtime_min_p = oneFloat(0.01 + 0.1 * random());
  if (index % 8 === 4) inputs.repetition_penalty = oneFloat(1 + 0.5 * random());
  if (index % 7 === 2) inputs.frequency_penalty = oneFloat(random() - 0.5);
  if (index % 3 !== 2) return inputs;
  const first = Math.floor(random() * vocabSize);
  const ends = Array.from({ length: Math.ceil(vocabSize / 10) }, (_, i) => [(first + i) % vocabSize]);
  inputs.end_id = oneInt(ends[0]![0]!);
  inputs.stop_words_list = encodeWordList(ends.slice(1));
  inputs.min_length = oneInt(1 + Math.floor(random() * maxNew));
  return inputs;
}

/** Fails unless the answer is as long as its request allows: whole, or ended after its min_length. */
export function expectAllowedLength({ inputs }: InferenceRequest, length: number): void {
  const asked = Number(inputs.request_output_len!.data[0]);
  const least = inputs.min_length ? Number(inputs.min_length.data[0]) : asked;
  expect(length).toBeGreaterThanOrEqual(least);
  expect(length).toBeLessThanOrEqual(asked);
}

function oneInt(value: number): Tensor {
  return { shape: [1], data: Int32Array.of(value) };
}

function oneFloat(value: number): Tensor {
  return { shape: [1], data: Float32Array.of(value) };
}
