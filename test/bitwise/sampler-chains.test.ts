import { afterAll, expect, it } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { Tensor } from '../../callbacks/types.js';
import { bool, f32, i32 } from '../../tools/support/loop-harness.js';
import {
  BEST_INSTRUCTION_SET,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { type RunOptions, runAlone, runLoop, runOptions } from './run-loop.js';
import { type Arrival, randomScenario } from './scenario.js';

const REQUESTS = 24;
const WIDE_POOL = 400;
/** The greatest of these requests and hardly more. */
const SMALL_POOL = 14;

const engines = new TestEngines();
afterAll(() => engines.remove());

const CHAINS: readonly (() => Record<string, Tensor>)[] = [
  () => ({ mirostat: i32(2), mirostat_tau: f32(3), mirostat_eta: f32(0.3) }),
  () => ({ mirostat: i32(1), mirostat_tau: f32(4) }),
  () => ({ xtc_probability: f32(0.6), xtc_threshold: f32(0.002) }),
  () => ({ runtime_typical_p: f32(0.5), temperature_last: bool(true) }),
  () => ({
    dry_multiplier: f32(2),
    dry_allowed_length: i32(1),
    dry_penalty_last_n: i32(30),
    dry_sequence_breakers: encodeWordList([[5], [6, 7]]),
  }),
  () => ({ top_n_sigma: f32(1.2), dynatemp_range: f32(0.4), dynatemp_exponent: f32(1.5) }),
  () => ({ reasoning_budget: { shape: [1, 3], data: Int32Array.of(6, 5, -1) }, dry_multiplier: f32(1) }),
  () => ({ repetition_penalty: f32(1.4), penalty_last_n: i32(4) }),
  () => ({ mirostat: i32(2), num_return_sequences: i32(2), dry_multiplier: f32(1) }),
  () => ({}),
];

function scenario(vocabSize: number): Arrival[] {
  const limits = { vocabSize, requests: REQUESTS, maxPrompt: 40, maxNew: 50, arrivalSpan: 30, seed: 5 };
  return randomScenario(limits).map(({ iteration, request }, index) => ({
    iteration,
    request: {
      ...request,
      inputs: { ...request.inputs, temperature: f32(1.1), ...CHAINS[index % CHAINS.length]!() },
    },
  }));
}

const RUNS: { name: string; threads: number; pauses: boolean; options: RunOptions }[] = [
  {
    name: 'together',
    threads: 2,
    pauses: false,
    options: runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 256, false),
  },
  {
    name: 'paused',
    threads: 1,
    pauses: true,
    options: runOptions('MAX_UTILIZATION', SMALL_POOL, 256, false),
  },
  {
    name: 'paused, chunked, reused blocks, two micro-batches in turns',
    threads: 3,
    pauses: true,
    options: {
      ...runOptions('MAX_UTILIZATION', SMALL_POOL, 64, true),
      reuse: true,
      numSecondaryBlocks: 10,
      overlap: true,
    },
  },
];

it.each(RUNS)('chains of samplers, $name: each answers as alone', async ({ threads, pauses, options }) => {
  const engine = await engines.get(tinyModelPath('gqa'), 'f32');
  const open = (own: number) =>
    openExecutor(engine, {
      instructionSet: BEST_INSTRUCTION_SET,
      threads: own,
      maxSeqLen: 96,
      tokensPerBlock: 16,
      numBlocks: WIDE_POOL,
      numSecondaryBlocks: 10,
      maxNumTokens: 256,
      maxNumSequences: 64,
      maxLogitRows: 64,
    });
  const { config } = engine.manifest;
  const one = open(1);
  const arrivals = scenario(one.vocabSize);
  const alone = runAlone(one, config, arrivals, {});
  one.close();
  const many = open(threads);
  const result = runLoop(many, config, arrivals, options);
  many.close();
  expect(alone.size).toBeGreaterThan(REQUESTS);
  for (const [key, expected] of alone) {
    const found = result.answers.get(key)!;
    expect(found.error, `answer ${key}`).toBe('');
    expect(found.tokens, `answer ${key}`).toStrictEqual(expected.tokens);
    expect(found.logProbs, `answer ${key}`).toStrictEqual(expected.logProbs);
  }
  expect(result.replayMismatches).toBe(0);
  if (pauses) expect(result.pauses).toBeGreaterThan(0);
});
