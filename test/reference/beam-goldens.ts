import { expect } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import type { Executor } from '../../engine/executors/executor.js';
import type { ModelConfig } from '../../models/model-config.js';
import { bool, f32, i32, makeRequest, u64 } from '../../tools/support/loop-harness.js';
import { type Answer, runLoop, sequenceKey } from '../bitwise/run-loop.js';

/** A search of tools/reference/beams.py. */
export interface BeamGolden {
  model: string;
  promptIds: number[];
  maxNewTokens: number;
  width: number;
  lengthPenalty: number;
  earlyStopping: boolean | 'never';
  ends: number[];
  processors: {
    repetition_penalty?: number;
    no_repeat_ngram_size?: number;
    min_new_tokens?: number;
    bad_words?: number[][];
    sequence_bias?: [number, number][];
  };
  /** Generated tokens, the one that ended a beam included; the best beam first. */
  beams: number[][];
  scores: number[];
}

/** Greatest difference of a beam's score in f32. */
const SCORE_DIFFERENCE_MAX = 5e-4;
export const MAX_BEAM_WIDTH = 8;

function requestOf(golden: BeamGolden, requestId: bigint): InferenceRequest {
  const { promptIds, maxNewTokens, width, lengthPenalty, earlyStopping, processors } = golden;
  const [endId = -1, ...otherEnds] = golden.ends;
  const inputs: Record<string, Tensor> = {
    beam_width: i32(width),
    len_penalty: f32(lengthPenalty),
    early_stopping: i32(earlyStopping === 'never' ? 2 : Number(earlyStopping)),
    end_id: i32(endId),
    streaming: bool(false),
    return_log_probs: bool(true),
    random_seed: u64(0n),
    repetition_penalty: f32(processors.repetition_penalty ?? 1),
    no_repeat_ngram_size: i32(processors.no_repeat_ngram_size ?? 0),
    min_length: i32(processors.min_new_tokens ?? 0),
  };
  if (otherEnds.length > 0) inputs.stop_words_list = encodeWordList(otherEnds.map((token) => [token]));
  if (processors.bad_words) inputs.bad_words_list = encodeWordList(processors.bad_words);
  const bias = processors.sequence_bias;
  if (bias) {
    inputs.logit_bias_tokens = { shape: [1, bias.length], data: Int32Array.from(bias, ([token]) => token) };
    inputs.logit_bias = { shape: [1, bias.length], data: Float32Array.from(bias, ([, value]) => value) };
  }
  return makeRequest(requestId, promptIds, maxNewTokens, inputs);
}

/** The first of the ends is end_id, which is no part of an answer, as the others are. */
function expectSameBeams(golden: BeamGolden, answers: readonly Answer[], where: string): void {
  const [endId = -1] = golden.ends;
  const expected = golden.beams.map((beam) => (beam.at(-1) === endId ? beam.slice(0, -1) : beam));
  expect(answers.map(({ error }) => error).join(''), where).toBe('');
  expect(
    answers.map(({ tokens }) => tokens),
    where,
  ).toEqual(expected);
  for (const [i, score] of golden.scores.entries()) {
    const ours = answers[i]!.cumLogProb / golden.beams[i]!.length ** golden.lengthPenalty;
    expect(Math.abs(ours - score), where).toBeLessThan(SCORE_DIFFERENCE_MAX * Math.max(1, Math.abs(score)));
  }
}

/** All searches of a model at once, in chunks, so that each runs next to others. */
export function compareBeams(executor: Executor, config: ModelConfig, cases: readonly BeamGolden[]): void {
  const arrivals = cases.map((golden, i) => ({
    iteration: Math.floor(i / 4),
    request: requestOf(golden, BigInt(i)),
  }));
  const { answers } = runLoop(executor, config, arrivals, {
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    numBlocks: executor.options.numBlocks,
    maxNumTokens: 96,
    chunked: true,
    maxBeamWidth: MAX_BEAM_WIDTH,
  });
  for (const [i, golden] of cases.entries()) {
    const found = golden.beams.map((_, beam) => answers.get(sequenceKey(BigInt(i), beam))!);
    const { promptIds: _, beams: __, scores: ___, ...options } = golden;
    expectSameBeams(golden, found, `search ${i}: ${JSON.stringify(options)}`);
  }
}
