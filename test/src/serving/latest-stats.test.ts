import { describe, expect, it } from 'vitest';
import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { EngineInfo } from '../../../callbacks/worker-messages.js';
import { LoopStatistics, noCounts } from '../../../engine/loop/loop-statistics.js';
import { LatestStats } from '../../../src/serving/latest-stats.js';

const memory = { weightBytes: 1, kvCacheBytes: 2, secondaryKvCacheBytes: 0, workspaceBytes: 3 };
const engine = {
  numBlocks: 32,
  tokensPerBlock: 8,
  maxNumSequences: 4,
  memory: { ...memory, draft: null },
} as unknown as EngineInfo;

/** An iteration with three requests, of which blocks stay `held` after it. */
function iteration(held: number): IterationStats {
  const counts = {
    ...noCounts(),
    activeRequests: 3,
    contextRequests: 1,
    generationRequests: 2,
    contextTokens: 9,
  };
  const blocks = {
    ...{
      maxBlocks: 32,
      freeBlocks: 20,
      usedBlocks: 12,
      tokensPerBlock: 8,
      allocTotalBlocks: 0,
      allocNewBlocks: 0,
    },
    ...{ reusedBlocks: 0, missedBlocks: 0, cacheHitRate: 0, secondaryMaxBlocks: 0, secondaryUsedBlocks: 0 },
    ...{ swappedOutBlocks: 0, swappedInBlocks: 0, states: null, disk: null },
  };
  return { ...new LoopStatistics(4).finishIteration(counts, blocks, held, 1, 0), iteration: 7 };
}

const BUSY = {
  'Active Request Count': 3,
  'Scheduled Requests': 3,
  'Context Requests': 1,
  'Generation Requests': 2,
  'Total Context Tokens': 9,
  'Used KV cache blocks': 12,
  'Free KV cache blocks': 20,
};
const AT_REST = {
  'Active Request Count': 0,
  'Scheduled Requests': 0,
  'Context Requests': 0,
  'Generation Requests': 0,
  'Paused Requests': 0,
  'Total Context Tokens': 0,
  'Used KV cache blocks': 2,
  'Free KV cache blocks': 30,
};

function latestStats() {
  const scene = { isIdle: true };
  const latest = new LatestStats('InflightFusedBatching', engine, () => scene.isIdle);
  return { scene, latest, read: () => JSON.parse(latest.json()) as Record<string, unknown> };
}

describe('the statistics of the latest iteration', () => {
  it('say what ran, and when all has ended that nothing does, with the time and the number of the last one', () => {
    const { scene, latest, read } = latestStats();
    expect(read()).toMatchObject({
      'Active Request Count': 0,
      'Used KV cache blocks': 0,
      'Iteration Counter': 0,
    });
    scene.isIdle = false;
    latest.note(iteration(2));
    const busy = read();
    expect(busy).toMatchObject(BUSY);
    scene.isIdle = true;
    const { Timestamp, 'Iteration Counter': number } = busy;
    expect(read()).toMatchObject({ ...AT_REST, Timestamp, 'Iteration Counter': number });
    expect(Object.keys(read())).toEqual(Object.keys(busy));
  });

  it('do not show what ran before a rest while the first iteration behind it runs', () => {
    const { scene, latest, read } = latestStats();
    latest.note(iteration(2)); // its last response has been delivered: nothing is in flight
    scene.isIdle = false;
    expect(read()).toMatchObject(AT_REST);
  });

  it('begin anew when the engine dies', () => {
    const { scene, latest, read } = latestStats();
    scene.isIdle = false;
    latest.note(iteration(2));
    latest.noteLoss();
    expect(read()).toMatchObject({
      'Active Request Count': 0,
      'Used KV cache blocks': 0,
      'Iteration Counter': 0,
    });
  });
});
