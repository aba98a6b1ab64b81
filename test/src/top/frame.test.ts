import { describe, expect, it } from 'vitest';
import { type FrameOptions, frame } from '../../../src/top/frame.js';
import { ModelFollower } from '../../../src/top/model-picture.js';

const OPTIONS: FrameOptions = {
  address: 'http://h:8000',
  columns: 100,
  rows: 20,
  offset: 0,
  problem: null,
  place: { index: 0, count: 1 },
  keys: 'q leaves',
};

const row = (id: number, state: number) => [
  id,
  `r-${id}\x1b[2J`,
  state,
  1500,
  20,
  30,
  12,
  7,
  64,
  3,
  5,
  1,
  10,
  20,
];

function formation(timeMs: number, generated: number, more: object = {}) {
  return {
    v: 1,
    timeMs,
    requests: [row(1, 2), row(2, 1), row(3, 0)],
    queued: 4,
    totals: {
      iterations: generated,
      iterationMs: 5 * generated,
      generatedTokens: generated,
      contextTokens: 0,
    },
    latency: { firstToken: { p50: 31.24, p99: 99 }, interToken: null },
    blocks: { count: 100, tokensPerBlock: 32, runs: [10, 0, 5, -3, 15, -2, 70, -1] },
    ...more,
  };
}

function follower() {
  const model = new ModelFollower('m');
  model.noteStats({ 'Max Request Count': 64 });
  model.noteFormation(formation(1_000, 100));
  model.noteFormation(formation(2_000, 300));
  return model;
}

describe('the picture of a model', () => {
  it('has rates of what happened between events, and who holds which blocks', () => {
    expect(follower().picture()).toMatchObject({
      tokensPerSecond: 200,
      promptTokensPerSecond: 0,
      iterationMs: 5,
      batch: 2,
      maxBatch: 64,
      queued: 4,
      kv: { blocks: 100, used: 10, shared: 5, cached: 15, free: 70 },
      firstTokenMs: { p50: 31.24, p99: 99 },
      interTokenMs: null,
    });
  });

  it('begins anew with an engine that does, and behind a gap', () => {
    const model = follower();
    model.noteFormation(formation(3_000, 5));
    expect(model.picture().tokensPerSecond).toBeNull();
    model.noteFormation(formation(4_000, 15));
    expect(model.picture().tokensPerSecond).toBe(10);
    model.interrupt();
    expect(model.picture().tokensPerSecond).toBeNull();
  });

  it('does without what another version does not tell, and with what it tells beyond', () => {
    const model = new ModelFollower('m');
    model.noteFormation({ v: 2, timeMs: 1, requests: [[7, 'x', 9, 1], null], news: {} });
    expect(model.picture()).toMatchObject({
      tokensPerSecond: null,
      maxBatch: null,
      kv: { blocks: 0 },
      requests: [{ id: 7, state: 'queued', generated: 0 }, { id: 0 }],
    });
    expect(frame(model.picture(), OPTIONS)[1]!.text).toContain('tokens/s - ');
  });
});

describe('the frame', () => {
  const texts = (more: Partial<FrameOptions> = {}) =>
    frame(follower().picture(), { ...OPTIONS, ...more }).map(({ text }) => text);

  it('has the speed, the cache, latencies and a row for each request', () => {
    expect(texts()).toEqual([
      'skein top  m  http://h:8000',
      'tokens/s 200 (prompt 0.0)   batch 2 of 64   iteration 5.0 ms   queue 4',
      `KV ${'█'.repeat(6)}${'▒'.repeat(6)}${'░'.repeat(28)} 15 % used, 15 % cached of 3200 tokens`,
      'first token p50 31.2 ms, p99 99.0 ms',
      '',
      'id  state                   age  prompt  generated  blocks  cached  request',
      ' 1  generation (resumed)  1.5 s      20       7/64       3       5  r-1[2J',
      ' 2  context (resumed)     1.5 s   12/30       7/64       3       5  r-2[2J',
      ' 3  queued (resumed)      1.5 s      20       7/64       3       5  r-3[2J',
      'q leaves',
    ]);
  });

  it.each([
    [20, 5],
    [40, 8],
    [10, 3],
    [200, 60],
    [1, 1],
  ])('of %d columns and %d rows fits', (columns, rows) => {
    const shown = texts({ columns, rows });
    expect(shown.length).toBeLessThanOrEqual(rows);
    for (const text of shown) expect(Array.from(text).length).toBeLessThanOrEqual(columns);
  });

  it('tells how many requests it does not show, scrolls, and says where the server is away', () => {
    expect(texts({ rows: 9 }).slice(6)).toEqual([expect.stringMatching(/^ 1 /), 'and 2 more', 'q leaves']);
    expect(texts({ rows: 9, offset: 1 }).slice(6)).toEqual([
      expect.stringMatching(/^ 2 /),
      expect.stringMatching(/^ 3 /),
      'q leaves',
    ]);
    expect(texts({ problem: 'gone.', place: { index: 1, count: 3 } }).slice(0, 2)).toEqual([
      'skein top  m (2 of 3)  http://h:8000',
      'away: gone. Trying again.',
    ]);
  });
});
