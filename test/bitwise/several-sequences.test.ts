import { afterAll, describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import { bool, f32, i32 } from '../../tools/support/loop-harness.js';
import {
  BEST_INSTRUCTION_SET,
  cacheOf,
  type Format,
  INT8_CACHE,
  openExecutor,
  precisionOf,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { isMade, madeModelPath } from '../support/made-models.js';
import { type RunOptions, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const MAX_BEAM_WIDTH = 4;
const REQUESTS = 21;
const WIDE_POOL = 400;
/** The greatest of these requests and hardly more. */
const SMALL_POOL = 26;

const folder = temporaryFolder('skein-several-sequences');
const engines = new TestEngines();
/** A tiny model of the fixtures, or one that is made here. */
const pathOf = (variant: string) =>
  isMade(variant) ? madeModelPath(folder, variant) : tinyModelPath(variant);
afterAll(() => engines.remove());

/** Every third request is a beam search, every third draws several sequences, the others draw one. */
function scenario(vocabSize: number): Arrival[] {
  const limits = { vocabSize, requests: REQUESTS, maxPrompt: 40, maxNew: 50, arrivalSpan: 30, seed: 11 };
  return randomScenario(limits).map(({ iteration, request }, index) => {
    const inputs: Record<string, Tensor> = { ...request.inputs };
    if (index % 3 === 0) {
      for (const name of ['temperature', 'runtime_top_k', 'runtime_top_p', 'runtime_min_p'])
        delete inputs[name];
      inputs.beam_width = i32(2 + (index % 3) + (index % 2));
      inputs.len_penalty = f32((index % 4) / 2);
      inputs.early_stopping = i32(index % 3);
      inputs.top_log_probs = i32(index % 5);
    } else if (index % 3 === 1) {
      inputs.num_return_sequences = i32(2 + (index % 2));
      if (index % 2 === 0) {
        inputs.best_of = i32(4);
        inputs.streaming = bool(false);
      }
    }
    return { iteration, request: { ...request, inputs } };
  });
}

const run = (
  schedulerPolicy: RunOptions['schedulerPolicy'],
  numBlocks: number,
  chunked: boolean,
): RunOptions => ({
  ...runOptions(schedulerPolicy, numBlocks, chunked ? 64 : 256, chunked),
  maxBeamWidth: MAX_BEAM_WIDTH,
});
const RUNS: { name: string; threads: number; pauses: boolean; options: RunOptions }[] = [
  { name: 'together', threads: 1, pauses: false, options: run('GUARANTEED_NO_EVICT', WIDE_POOL, false) },
  {
    name: 'small pool, chunked',
    threads: 2,
    pauses: false,
    options: run('GUARANTEED_NO_EVICT', SMALL_POOL, true),
  },
  { name: 'paused', threads: 2, pauses: true, options: run('MAX_UTILIZATION', SMALL_POOL, false) },
  {
    name: 'paused, chunked, reused blocks',
    threads: 3,
    pauses: true,
    options: { ...run('MAX_UTILIZATION', SMALL_POOL, true), reuse: true, numSecondaryBlocks: 10 },
  },
  {
    name: 'paused, two micro-batches in turns',
    threads: 2,
    pauses: true,
    options: { ...run('MAX_UTILIZATION', SMALL_POOL, true), overlap: true },
  },
];

const PAUSED = RUNS.filter(({ pauses }) => pauses);

describe.each<{ variant: string; format: Format; runs: typeof RUNS }>([
  { variant: 'gqa', format: 'f32', runs: RUNS },
  { variant: 'gqa', format: 'int8', runs: RUNS },
  { variant: 'gqa', format: INT8_CACHE, runs: PAUSED },
  // Layers with a window next to layers without.
  { variant: 'gemma3', format: 'bf16', runs: PAUSED.slice(0, 1) },
  // Layers that keep a state of each sequence.
  { variant: 'qwen3.5', format: 'bf16', runs: RUNS },
  { variant: 'lfm2', format: 'int8', runs: PAUSED.slice(1) },
])('beams, several sequences and plain requests of $variant in $format', ({ variant, format, runs }) => {
  it.each(runs)('$name: each answers as alone', async ({ threads, pauses, options }) => {
    const engine = await engines.get(pathOf(variant), precisionOf(format));
    const open = (own: number) =>
      openExecutor(engine, {
        ...cacheOf(format),
        instructionSet: BEST_INSTRUCTION_SET,
        threads: own,
        maxSeqLen: 96,
        tokensPerBlock: 16,
        numBlocks: WIDE_POOL,
        numSecondaryBlocks: 10,
        maxNumTokens: 256,
        maxNumSequences: 16 * MAX_BEAM_WIDTH,
        maxLogitRows: 16 * MAX_BEAM_WIDTH,
      });
    const { config } = engine.manifest;
    const one = open(1);
    const arrivals = scenario(one.vocabSize);
    const alone = runAlone(one, config, arrivals, { maxBeamWidth: MAX_BEAM_WIDTH });
    one.close();
    const many = open(threads);
    const result = runLoop(many, config, arrivals, options);
    many.close();
    expect(result.answers.size).toBe(alone.size);
    expect(alone.size).toBeGreaterThan(REQUESTS);
    for (const [key, expected] of alone) {
      const found = result.answers.get(key)!;
      expect(found.error, `answer ${key}`).toBe('');
      expect(found.tokens, `answer ${key}`).toStrictEqual(expected.tokens);
      expect(found.logProbs, `answer ${key}`).toStrictEqual(expected.logProbs);
      expect(found.cumLogProb, `answer ${key}`).toBe(expected.cumLogProb);
    }
    expect(result.replayMismatches).toBe(0);
    if (pauses) expect(result.pauses).toBeGreaterThan(0);
  });
});
