import type { Formation, FormationRow } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { formationOf } from '../../../engine/loop/formation.js';
import { FormationWriter } from '../../../host/formation-writer.js';
import { BLOCK_CACHED, BLOCK_FREE, BLOCK_SHARED, runsOf } from '../../../kvcache/block-owners.js';
import { KvCacheManager } from '../../../kvcache/kv-cache-manager.js';
import { SteppedHost } from '../../support/stepped-host.js';

const hosts: SteppedHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});

function start(...options: ConstructorParameters<typeof SteppedHost>): SteppedHost {
  const stepped = new SteppedHost(...options);
  hosts.push(stepped);
  return stepped;
}

const drain = async (stream: AsyncIterable<unknown>) => {
  for await (const _ of stream);
};
const prompt = (length: number, first = 1) => Array.from({ length }, (_, i) => (first + i) % 50);
const byLabel = ({ requests }: Formation) => new Map(requests.map((row) => [row[1], row]));

/** Entry by entry, what the runs say. */
function ownersOf({ blocks: { runs } }: Formation): number[] {
  return runs.flatMap((length, index) =>
    index % 2 === 0 ? Array<number>(length).fill(runs[index + 1]!) : [],
  );
}

describe('watchFormation', () => {
  it('tells every state that a request goes through, and whose the blocks are', async () => {
    const kvCacheConfig = { enableBlockReuse: true, maxTokens: 128 };
    const stepped = start({
      kvCacheConfig,
      enableChunkedContext: true,
      maxNumTokens: 17,
      maxNumSequences: 2,
      maxSeqLen: 128,
    });
    const { host } = stepped;
    await host.ready;
    const seen: Formation[] = [];
    const stop = host.watchFormation((formation) => seen.push(formation), 1);
    await expect.poll(() => seen.length, { interval: 1 }).toBe(1);
    expect(seen[0]).toMatchObject({ v: 1, iteration: 0, requests: [], queued: 0, ended: [] });
    expect(seen[0]!.blocks).toEqual({ count: 16, tokensPerBlock: 8, runs: [16, BLOCK_FREE] });

    const ends = ['long', 'short', 'third'].map((label, index) =>
      drain(host.submit({ promptTokens: prompt(index === 0 ? 40 : 4, 1 + index), maxNewTokens: 6, label })),
    );
    await stepped.reach(2);
    await expect.poll(() => seen.at(-1)!.iteration, { interval: 1 }).toBe(1);
    const after1 = seen.at(-1)!;
    const [, , state, ageMs, ...counts] = byLabel(after1).get('long')!;
    expect(state).toBe(1);
    expect(ageMs).toBeGreaterThanOrEqual(0);
    expect(counts.slice(0, 2)).toEqual([40, 40]);
    expect(counts[2]).toBeGreaterThan(0);
    expect(counts[2]).toBeLessThan(40);
    expect(counts.slice(3, 8)).toEqual([0, 6, 5, 0, 0]);
    expect(counts[8]).toBeGreaterThanOrEqual(0);
    expect(counts[9]).toBe(-1);
    // There are two places in the engine.
    expect(byLabel(after1).get('third')!.slice(2, 3)).toEqual([0]);
    expect(after1.queued).toBe(1);
    const row = after1.requests.findIndex((one) => one[1] === 'long');
    expect(ownersOf(after1).filter((owner) => owner === row)).toHaveLength(5);
    expect(ownersOf(after1)).toHaveLength(16);

    stepped.open();
    await Promise.all(ends);
    await expect.poll(() => seen.at(-1)!.requests.length, { interval: 5 }).toBe(0);
    const states = (label: string) => new Set(seen.flatMap((one) => byLabel(one).get(label)?.[2] ?? []));
    expect(states('long').has(2)).toBe(true);
    expect(seen.flatMap(({ ended }) => ended.map(([, label, reason]) => [label, reason])).sort()).toEqual([
      ['long', 'length'],
      ['short', 'length'],
      ['third', 'length'],
    ]);
    // Every token of the contexts in chunks, each reported once, one after the other.
    const lengths = new Map(seen.flatMap(({ ended }) => ended.map((end) => [end[0], end])));
    for (const [id, [, , , endMs, age, promptTokens, generated, cachedTokens]] of lengths) {
      expect(endMs).toBeLessThanOrEqual(0);
      expect(age).toBeGreaterThanOrEqual(0);
      expect([generated, cachedTokens]).toEqual([6, 0]);
      const chunks = seen.flatMap(({ timeMs, steps }) =>
        steps
          .filter((step) => step[0] === id)
          .map(([, kind, begin, end, ...rest]) => [kind, timeMs + begin, timeMs + end, ...rest]),
      );
      let position = 0;
      for (const [kind, begin, end, from, tokens] of chunks) {
        expect(from).toBe(position);
        expect(end!).toBeGreaterThanOrEqual(begin!);
        position += tokens!;
        expect(kind).toBe(position === promptTokens ? 2 : 0);
      }
      expect(position).toBe(promptTokens);
      if (promptTokens === 40) expect(chunks.length).toBeGreaterThanOrEqual(3);
    }
    const { totals, latency } = seen.at(-1)!;
    expect(totals).toMatchObject({ contextTokens: 48, generatedTokens: 18, completedRequests: 3, pauses: 0 });
    expect(latency.firstToken!.count).toBe(3);
    expect(latency.interToken!.count).toBe(15);
    // The blocks of the ended prompts stay in the cache for others.
    expect(ownersOf(seen.at(-1)!).filter((owner) => owner === BLOCK_CACHED).length).toBeGreaterThanOrEqual(5);
    let told = seen.length;
    stop();
    await drain(host.submit({ promptTokens: prompt(4), maxNewTokens: 6 }));
    expect(seen.length).toBe(told);
    // A client that has all it wanted, as after a stop string, ends its request; one that leaves cancels it.
    const stopAgain = host.watchFormation((formation) => seen.push(formation), 1);
    const label = (isWhole: boolean) => `whole: ${isWhole}`;
    for (const isWhole of [true, false]) {
      const left = host.submit({ promptTokens: prompt(4), maxNewTokens: 100, label: label(isWhole) });
      await left[Symbol.asyncIterator]().next();
      left.leave(isWhole);
    }
    const reasonOf = (isWhole: boolean) =>
      seen.flatMap(({ ended }) => ended).find((end) => end[1] === label(isWhole))?.[2];
    await expect
      .poll(() => [reasonOf(true), reasonOf(false)], { interval: 1 })
      .toEqual(['stop', 'cancelled']);
    await expect.poll(() => seen.at(-1)!.requests.length, { interval: 1 }).toBe(0);
    stopAgain();
    told = seen.length;
    // A new watcher receives nothing about requests that are gone.
    host.watchFormation((formation) => seen.push(formation), 1);
    await expect.poll(() => seen.length, { interval: 1 }).toBeGreaterThan(told);
    for (const formation of seen.slice(told)) {
      expect(formation).toMatchObject({ steps: [], ended: [], requests: [] });
    }
  });

  it('shows pauses, and blocks that several share', async () => {
    const pool = { kvCacheConfig: { enableBlockReuse: true, maxTokens: 64 }, maxSeqLen: 64 };
    const stepped = start(pool);
    stepped.open();
    const { host } = stepped;
    await host.ready;
    const seen: Formation[] = [];
    host.watchFormation((formation) => seen.push(formation), 1);
    await drain(host.submit({ promptTokens: prompt(16), maxNewTokens: 1 }));
    const same = { promptTokens: prompt(18), maxNewTokens: 30 };
    await Promise.all([drain(host.submit(same)), drain(host.submit(same)), drain(host.submit(same))]);
    const rows: FormationRow[] = seen.flatMap(({ requests }) => requests);
    expect(rows.some(([, , state]) => state === 3)).toBe(true);
    expect(rows.some((row) => row[2] === 2 && row[11]! > 0)).toBe(true);
    const pauses = seen.flatMap(({ steps }) => steps.filter(([, kind]) => kind === 1));
    expect(pauses).toHaveLength(seen.at(-1)!.totals.pauses);
    expect(rows.some((row) => row[12]! >= 0 && row[13]! >= row[12]!)).toBe(true);
    expect(seen.some((one) => ownersOf(one).includes(BLOCK_SHARED))).toBe(true);
  });
});

it('tells of slots for states, of a model that has some', () => {
  const sizes = { numBlocks: 8, tokensPerBlock: 8, maxSeqLen: 64, enableBlockReuse: true };
  const states = { numSlots: 3, numSnapshots: 2, draftRows: 0 };
  const record = { nowMs: 0, steps: new Float64Array(0), totals: {}, longestIterationMs: 0, latency: {} };
  const write = (kvCache: KvCacheManager) =>
    new FormationWriter({ numBlocks: 8, tokensPerBlock: 8 }).write(
      formationOf([], kvCache, 1, record as never),
      new Map(),
      { size: 0, list: () => [] },
    );
  const kvCache = new KvCacheManager({ ...sizes, states });
  const tokens = Int32Array.from(prompt(20));
  kvCache.addSequence(1n, 20, { tokens, salt: 0n });
  kvCache.states!.takeSnapshots(1n, { start: 0, end: 20, drafts: 0 });
  kvCache.store(1n, tokens, 20);
  const told = { slots: 3, usedSlots: 1, snapshots: 2, keptSnapshots: 1, hits: 0, lost: 0 };
  expect(write(kvCache).stateSlots).toEqual(told);
  expect(write(new KvCacheManager(sizes))).not.toHaveProperty('stateSlots');
});

it('runs are of equal entries', () => {
  expect(runsOf(Int32Array.of(-1, -1, 0, 0, 0, -2))).toEqual(Int32Array.of(2, -1, 3, 0, 1, -2));
  expect(runsOf(new Int32Array(0))).toEqual(new Int32Array(0));
});
