import { afterAll, describe, expect, it } from 'vitest';
import type { Executor } from '../../engine/executors/executor.js';
import type { ModelConfig } from '../../models/model-config.js';
import { firstWrongToken, readGolden } from '../../tools/support/goldens.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  type TestExecutorOptions,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import {
  type Answer,
  digestOf,
  type RunOptions,
  type RunResult,
  runAlone,
  runLoop,
  runOptions,
} from '../bitwise/run-loop.js';
import { type Arrival, randomScenario } from '../bitwise/scenario.js';
import { type BeamGolden, compareBeams, MAX_BEAM_WIDTH } from '../reference/beam-goldens.js';
import { greatestDifference } from '../reference/compare-logits.js';
import { type OwnPrompt, requestOf } from '../reference/own-prompts.js';
import { describeExecutors, NATIVE } from '../support/executors.js';

const REQUESTS = 14;
const WIDE_POOL = 100;
/** Blocks for one sequence of 96 tokens and a little more. */
const SMALL_POOL = 8;
const SECONDARY_BLOCKS = 20;
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;

const engines = new TestEngines();
afterAll(() => engines.remove());

const SMALL = runOptions('MAX_UTILIZATION', SMALL_POOL, 48, true);
const WIDE = runOptions('GUARANTEED_NO_EVICT', WIDE_POOL, 160, false);
const RUNS: [string, RunOptions, (result: RunResult) => void][] = [
  ['together', WIDE, ({ greatestBatch }) => expect(greatestBatch).toBeGreaterThan(5)],
  ['in chunks', { ...WIDE, maxNumTokens: 48, chunked: true }, ({ pauses }) => expect(pauses).toBe(0)],
  ['paused, in chunks', SMALL, ({ pauses }) => expect(pauses).toBeGreaterThan(2)],
  [
    'contexts and generation apart',
    { ...SMALL, modelType: 'InflightBatching' },
    ({ pauses }) => expect(pauses).toBeGreaterThan(2),
  ],
  [
    'in two micro-batches, in chunks',
    { ...SMALL, numBlocks: 24, overlap: true },
    ({ overlapped }) => expect(overlapped).toBeGreaterThan(5),
  ],
  [
    'padded, in lockstep',
    { ...WIDE, modelType: 'V1' },
    ({ emptyGenerationSlots }) => expect(emptyGenerationSlots).toBeGreaterThan(20),
  ],
  [
    'from reused blocks',
    { ...WIDE, reuse: true },
    ({ reusedTokens }) => expect(reusedTokens).toBeGreaterThan(50),
  ],
  [
    'from blocks that were swapped out',
    {
      ...runOptions('GUARANTEED_NO_EVICT', SMALL_POOL, 160, false),
      reuse: true,
      numSecondaryBlocks: SECONDARY_BLOCKS,
    },
    ({ swappedInBlocks }) => expect(swappedInBlocks).toBeGreaterThan(0),
  ],
];

const NEEDED = [
  'paused, in chunks',
  'padded, in lockstep',
  'from reused blocks',
  'from blocks that were swapped out',
];

describeExecutors((on) => {
  async function open(model: string, options: TestExecutorOptions = {}) {
    const engine = await engines.get(tinyModelPath(model), 'f32');
    const executor = await on.open(
      nativeEngine(engine),
      engineOptions(engine, {
        tokensPerBlock: 16,
        maxSeqLen: 96,
        numBlocks: WIDE_POOL + 160 / 16 + 2 * REQUESTS,
        numSecondaryBlocks: SECONDARY_BLOCKS,
        maxNumTokens: 160,
        maxNumSequences: 2 * REQUESTS,
        maxLogitRows: REQUESTS,
        ...options,
      }),
    );
    return { executor, config: engine.manifest.config };
  }

  // What a schedule asks of an executor: chunks next to steps, blocks that come again, copies of blocks,
  // padding. The native one does all.
  const runs = on === NATIVE ? RUNS : RUNS.filter(([name]) => NEEDED.includes(name));

  describe('requests that are sampled in every way', () => {
    const scenario = ({ vocabSize }: ModelConfig): Arrival[] => {
      const lengths = { requests: REQUESTS, maxPrompt: 60, maxNew: 30, arrivalSpan: 20 };
      return randomScenario({ vocabSize, ...lengths, sharedPrompts: true, returnsLogits: true, seed: 7 });
    };
    let alone: Map<bigint, Answer> | null = null;
    const answersAlone = (executor: Executor, config: ModelConfig) => {
      alone ??= runAlone(executor, config, scenario(config));
      return alone;
    };

    it.each(runs)('answer %s as each alone', async (_, options, expectRun) => {
      const { executor, config } = await open('gqa');
      const expected = answersAlone(executor, config);
      const result = runLoop(executor, config, scenario(config), options);
      executor.close();
      expectRun(result);
      expect(result.replayMismatches).toBe(0);
      expect([...result.answers.keys()].sort()).toEqual([...expected.keys()].sort());
      for (const [id, answer] of expected) {
        const found = result.answers.get(id)!;
        expect(found.error).toBe('');
        expect(found.tokens, `request ${id}`).toEqual(answer.tokens);
        if (on.keepsBits) expect(digestOf(found), `request ${id}`).toEqual(digestOf(answer));
        else expect(greatestDifference(answer.logProbs, found.logProbs)).toBeLessThan(1e-4);
      }
    });
  });

  it('prompts with embeddings and positions of their own have the same logits and greedy tokens', async () => {
    const { executor, config } = await open('gqa', { maxSeqLen: 256 });
    for (const prompt of readGolden<OwnPrompt>('prompt-inputs')) {
      for (const maxNumTokens of [160, 16]) {
        const options = { ...WIDE, maxNumTokens, chunked: maxNumTokens === 16 };
        const { answers } = runLoop(
          executor,
          config,
          [{ iteration: 0, request: requestOf(prompt) }],
          options,
        );
        const { contextLogits, tokens, error } = answers.get(1n)!;
        expect(error).toBe('');
        for (const { position, values } of prompt.logits) {
          const ours = contextLogits!.subarray(
            position * config.vocabSize,
            (position + 1) * config.vocabSize,
          );
          expect(greatestDifference(values, ours), prompt.name).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
        }
        expect(firstWrongToken(tokens, prompt), prompt.name).toBeNull();
      }
    }
    executor.close();
  });

  it('beams are those of Hugging Face transformers', async () => {
    const goldens = readGolden<BeamGolden>('beams').filter(({ model }) => model === 'tiny-gqa');
    const { executor, config } = await open('gqa', {
      maxLogitRows: 4 * MAX_BEAM_WIDTH,
      maxNumSequences: 4 * MAX_BEAM_WIDTH,
      maxSeqLen: 80,
      numBlocks: 120,
    });
    compareBeams(executor, config, goldens.slice(0, 4));
    executor.close();
  });
});
