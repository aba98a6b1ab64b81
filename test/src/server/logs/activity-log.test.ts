import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IterationStats } from '../../../../callbacks/gpt-manager-options.js';
import { logActivity } from '../../../../src/server/logs/activity-log.js';
import { LiveModels } from '../../../../src/serving/model-directory.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { ToldStatistics } from '../../support/served-models.js';
import { toyModel } from '../../support/toy-server.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function busyModel() {
  const lines: object[] = [];
  const log = {
    debug: () => {},
    info: (fields: object) => lines.push(fields),
    warn: () => {},
    error: () => {},
  };
  const models = new LiveModels();
  const counts = { running: 3, waiting: 2, maxBlocks: 8, usedBlocks: 1 };
  const statistics = new ToldStatistics<typeof counts, IterationStats>(() => counts);
  models.add(toyModel(new FakeEngine(() => []), { statistics }));
  logActivity(models, log, 10_000);
  const iterate = (stats: Partial<IterationStats>) =>
    statistics.tell({
      contextTokens: 0,
      generatedTokens: 0,
      queriedTokens: 0,
      reusedTokens: 0,
      ...stats,
    } as IterationStats);
  return { lines, models, iterate };
}

describe('the log of what engines do', () => {
  it('has a line every ten seconds while there is work, and none while there is not', () => {
    const { lines, iterate } = busyModel();
    expect(vi.getTimerCount()).toBe(0);
    iterate({ contextTokens: 500, queriedTokens: 400, reusedTokens: 100 });
    vi.advanceTimersByTime(5_000);
    iterate({ generatedTokens: 12 });
    vi.advanceTimersByTime(5_000);
    const first = {
      model: 'toy',
      running: 3,
      waiting: 2,
      promptTokensPerSecond: 50,
      generationTokensPerSecond: 1.2,
      kvCachePercent: 12.5,
      prefixHitPercent: 25,
    };
    expect(lines).toEqual([first]);
    iterate({ generatedTokens: 50 });
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([first, { ...first, promptTokensPerSecond: 0, generationTokensPerSecond: 5 }]);
    expect(vi.getTimerCount()).toBe(0);
    iterate({ generatedTokens: 10 });
    vi.advanceTimersByTime(10_000);
    expect(lines).toHaveLength(3);
  });

  it('ends with the model', () => {
    const { lines, models, iterate } = busyModel();
    iterate({ generatedTokens: 1 });
    models.remove('toy');
    expect(vi.getTimerCount()).toBe(0);
    iterate({ generatedTokens: 1 });
    vi.advanceTimersByTime(60_000);
    expect(lines).toEqual([]);
  });
});
