import { afterAll, describe, expect, it } from 'vitest';
import { RopeTable } from '../../engine/batch/rope-table.js';
import type { Engine } from '../../engine/building/engine.js';
import { DraftModel } from '../../engine/speculation/draft-model.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { CountedSpeculation } from '../support/counted-speculation.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeModelPath } from '../support/made-models.js';
import { type RunOptions, runAlone, runLoop } from './run-loop.js';
import { randomScenario } from './scenario.js';

const REQUESTS = 16;
const DRAFT_ROWS = 24;
const MAX_SEQ_LEN = 160;
const TOKENS_PER_BLOCK = 16;
const WIDE_POOL = 10 * REQUESTS;

const engines = new TestEngines();
afterAll(() => engines.remove());

/** Its rounds count as free, so that it drafts whatever this machine takes for them. */
class FreeDraftModel extends DraftModel {
  override roundCost(): number {
    return 0;
  }
}

const RUNS: { name: string; blocks: number; options: RunOptions }[] = [
  {
    name: 'together',
    blocks: WIDE_POOL,
    options: {
      schedulerPolicy: 'GUARANTEED_NO_EVICT',
      numBlocks: WIDE_POOL,
      maxNumTokens: 512,
      chunked: false,
    },
  },
  {
    name: 'maximal use, small pools, chunked, reuse',
    blocks: 24,
    options: {
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 12,
      maxNumTokens: 64,
      chunked: true,
      reuse: true,
    },
  },
];

const folder = temporaryFolder('skein-draft-models');
const pathOf = (variant: string) =>
  ['qwen3.5', 'lfm2', 'mamba2'].includes(variant) ? madeModelPath(folder, variant) : tinyModelPath(variant);
/** Slots for states, where layers keep them: those of sequences alone may have drafts. */
const statesOf = ({ plan }: Engine, numStateSlots: number, stateDraftRows: number) =>
  plan.states && { numStateSlots, numDraftSlots: numStateSlots, stateDraftRows };

describe.each([
  { variant: 'gqa', of: 'gqa', least: 0.85, most: 1 },
  { variant: 'bias', of: 'gqa', least: 0, most: 0.5 },
  // Layers that keep states, in both models.
  { variant: 'qwen3.5', of: 'qwen3.5', least: 0.85, most: 1 },
  { variant: 'lfm2', of: 'lfm2', least: 0.85, most: 1 },
  { variant: 'mamba2', of: 'mamba2', least: 0.85, most: 1 },
  { variant: 'lfm2', of: 'qwen3.5', least: 0, most: 0.5 },
])('tiny $variant as the draft model of tiny $of', ({ variant, of, least, most }) => {
  it('changes no bit of an answer, and is right as often as is to be expected', async () => {
    const engine = await engines.get(pathOf(of), 'bf16');
    const draftEngine = await engines.get(pathOf(variant), 'bf16');
    const sizes = { maxSeqLen: MAX_SEQ_LEN, tokensPerBlock: TOKENS_PER_BLOCK, numBlocks: WIDE_POOL };
    const executor = openExecutor(engine, {
      ...sizes,
      maxNumTokens: 512,
      maxNumSequences: REQUESTS,
      maxLogitRows: REQUESTS + DRAFT_ROWS,
      ...statesOf(engine, 2 * REQUESTS, 5),
    });
    const draftExecutor = openExecutor(draftEngine, {
      ...sizes,
      maxNumTokens: 40,
      maxNumSequences: DRAFT_ROWS,
      maxLogitRows: DRAFT_ROWS,
      ...statesOf(draftEngine, REQUESTS, 5),
    });
    const { config } = engine.manifest;
    const lengths = { requests: REQUESTS, maxPrompt: 90, maxNew: 60, arrivalSpan: 10 };
    const arrivals = randomScenario({
      vocabSize: config.vocabSize,
      sharedPrompts: true,
      ...lengths,
      seed: 9,
    });
    const alone = runAlone(executor, config, arrivals);
    const { rope } = draftEngine.manifest.config;
    expect(ropeDependsOnLength(rope)).toBe(false);
    // Milliseconds of a clock on which reading a prompt pays on the slowest machine, an emulated one too.
    let now = 0;
    for (const { blocks, options } of RUNS) {
      const states = draftEngine.plan.states && { numSlots: REQUESTS, numSnapshots: 0, draftRows: 5 };
      const kvCache = new KvCacheManager({ ...sizes, numBlocks: blocks, ...(states && { states }) });
      const draftModel = new FreeDraftModel({
        executor: draftExecutor,
        kvCache,
        rope: new RopeTable(ropeFrequencies(rope), null, REQUESTS),
        costShare: 0,
        clock: () => ++now,
        onFailure: (error) => {
          throw error;
        },
      });
      const policy = new CountedSpeculation({ usesNgrams: false, draftModel, maxDraftLen: 5, maxRows: 64 });
      const result = runLoop(executor, config, arrivals, {
        ...options,
        drafts: { policy, rows: DRAFT_ROWS },
      });
      expect(result.answers).toEqual(alone);
      expect(result.replayMismatches).toBe(0);
      expect(kvCache.freeBlocks).toBe(blocks);
      expect(policy.drafted).toBeGreaterThan(20);
      if (options.schedulerPolicy === 'MAX_UTILIZATION') expect(result.pauses).toBeGreaterThan(0);
      else {
        expect(policy.accepted / policy.drafted).toBeGreaterThanOrEqual(least);
        expect(policy.accepted / policy.drafted).toBeLessThanOrEqual(most);
      }
    }
    draftExecutor.close();
    executor.close();
  });
});
