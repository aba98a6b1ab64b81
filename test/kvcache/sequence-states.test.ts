import { describe, expect, it } from 'vitest';
import { promptHashes } from '../../kvcache/block-hashes.js';
import type { KvCacheEvent, StoredBlock } from '../../kvcache/cache-events.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { Retention } from '../../kvcache/retention.js';
import { randomNumbers } from '../bitwise/scenario.js';

const SIZE = 4;

function manager(
  sizes: { numSlots?: number; numSnapshots?: number; numBlocks?: number; numSecondaryBlocks?: number } = {},
) {
  const { numSlots = 4, numSnapshots = 8, numBlocks = 64, numSecondaryBlocks = 0 } = sizes;
  return new KvCacheManager({
    numBlocks,
    numSecondaryBlocks,
    tokensPerBlock: SIZE,
    maxSeqLen: 64,
    enableBlockReuse: true,
    maxEvents: 1000,
    states: { numSlots, numSnapshots, interval: 4 * SIZE, draftRows: 8 },
  });
}

const tokens = (length: number, seed = 0) => Int32Array.from({ length }, (_, i) => i + 1000 * seed);
const span = (start: number, end: number, drafts = 0) => ({ start, end, drafts });
const key = (of: Int32Array) => ({ salt: 0n, tokens: of });

/** Runs a prompt from where it begins to its end, in one chunk; returns the tokens found and the places of its snapshots. */
function run(
  kv: KvCacheManager,
  requestId: bigint,
  prompt: Int32Array,
  generated = 0,
  retention: Retention = {},
) {
  expect(kv.addSequence(requestId, prompt.length - generated, { ...key(prompt), retention })).toBe(true);
  const { reusedTokens } = kv.reuseOf(requestId);
  kv.states!.drainCopies();
  const places = kv
    .states!.takeSnapshots(requestId, span(reusedTokens, prompt.length - generated))
    .map(({ position }) => position);
  for (let end = prompt.length - generated + 1; end <= prompt.length; end++) {
    expect(kv.growSequence(requestId, end)).toBe(true);
    places.push(...kv.states!.takeSnapshots(requestId, span(end - 1, end)).map(({ position }) => position));
  }
  kv.store(requestId, prompt, prompt.length);
  kv.freeSequence(requestId);
  kv.checkIntegrity();
  return { reusedTokens, places };
}

describe('the states of sequences beside their blocks', () => {
  it('are kept at the last full block of a prompt, and every interval', () => {
    const kv = manager();
    expect(run(kv, 1n, tokens(38))).toEqual({ reusedTokens: 0, places: [16, 32, 36] });
    expect(run(kv, 2n, tokens(38)).reusedTokens).toBe(36);
  });

  it('say where a prompt can begin, and take one that was computed elsewhere behind a full block that has none', () => {
    const kv = manager();
    run(kv, 1n, tokens(22));
    const prompt = key(tokens(22));
    const usable = (length: number) => {
      const { blocks, state } = kv.usableBlocks(prompt, length);
      return [blocks.length, state >= 0];
    };
    // Snapshots lie after 16 and 20 tokens.
    expect([usable(21), usable(19), usable(15)]).toEqual([
      [5, true],
      [4, true],
      [0, false],
    ]);
    expect(kv.chainBeyond(prompt, 16, () => false)).toMatchObject({ cached: 3, usable: 0 });
    expect(kv.chainBeyond(prompt, 22, () => false)).toMatchObject({ cached: 5, usable: 5 });
    const longer = key(tokens(33));
    const hashes = promptHashes(longer, longer.tokens, SIZE);
    expect(kv.chainBeyond(longer, 33, (hash) => hash !== hashes[7])).toEqual({
      hashes: hashes.slice(0, 7),
      cached: 5,
      usable: 5,
    });
    const stateless = new KvCacheManager({
      numBlocks: 16,
      tokensPerBlock: SIZE,
      maxSeqLen: 64,
      enableBlockReuse: true,
    });
    stateless.addSequence(1n, 22, prompt);
    stateless.store(1n, prompt.tokens, 22);
    expect(stateless.chainBeyond(prompt, 22, () => false)).toMatchObject({ cached: 5, usable: 5 });
    expect(stateless.usableBlocks(prompt, 21)).toMatchObject({ blocks: { length: 5 }, state: -1 });
    const written: number[] = [];
    const write = (isKept: boolean) => (slot: number) => {
      written.push(slot);
      return isKept;
    };
    kv.adoptState(prompt, 7, write(true));
    kv.adoptState(prompt, 20, write(true));
    expect(written).toEqual([]);
    kv.adoptState(prompt, 12, write(false));
    expect([written.length, usable(15)]).toEqual([1, [0, false]]);
    kv.adoptState(prompt, 12, write(true));
    expect([written.length, usable(15), usable(11)]).toEqual([2, [3, true], [0, false]]);
    kv.checkIntegrity();
  });

  it('are kept at the last full block in front of the place where other prompts part from this one', () => {
    const kv = manager();
    const first = tokens(38);
    expect(kv.addSequence(1n, 38, { ...key(first), forksAt: 27 })).toBe(true);
    const places = kv.states!.takeSnapshots(1n, span(0, 38)).map(({ position }) => position);
    expect(places).toEqual([16, 24, 32, 36]);
    kv.store(1n, first, 38);
    kv.freeSequence(1n);
    const second = Int32Array.of(...first.slice(0, 27), ...tokens(8, 1));
    expect(run(kv, 2n, second).reusedTokens).toBe(24);
  });

  it('are kept at the end of a prompt that ends with a full block, for longer ones, and a block before, for the same', () => {
    const kv = manager();
    expect(run(kv, 1n, tokens(24)).places).toEqual([16, 20, 24]);
    expect(run(kv, 2n, tokens(30)).reusedTokens).toBe(24);
    expect(run(kv, 3n, tokens(24)).reusedTokens).toBe(20);
  });

  it('are kept at the last full block of what was generated, in one slot', () => {
    const kv = manager({ numSnapshots: 2 });
    const whole = tokens(31);
    expect(run(kv, 1n, whole, 20).places).toEqual([8, 12, 16, 20, 24, 28]);
    expect(run(kv, 2n, tokens(40)).reusedTokens).toBe(28);
  });

  it('are kept within a draft as far as it was right', () => {
    const draft = (right: number) => {
      const kv = manager({ numSnapshots: 4 });
      const whole = tokens(30);
      kv.addSequence(1n, 6, key(whole.slice(0, 6)));
      const [prompt] = kv.states!.takeSnapshots(1n, span(0, 6));
      kv.growSequence(1n, 7);
      kv.growSequence(1n, 8);
      const places = [
        ...kv.states!.takeSnapshots(1n, span(6, 7)),
        ...kv.states!.takeSnapshots(1n, span(7, 8)),
      ];
      kv.growSequence(1n, 17);
      places.push(...kv.states!.takeSnapshots(1n, span(8, 17, 8)));
      expect([prompt, ...places].map((place) => place!.position)).toEqual([4, 8, 12, 16]);
      kv.trimSequence(1n, 9 + right);
      const pending = [...kv.states!.pendingSlots(1n)];
      kv.store(1n, whole, 9 + right);
      kv.freeSequence(1n);
      kv.checkIntegrity();
      kv.addSequence(2n, 30, key(whole));
      return [pending.length, kv.reuseOf(2n).reusedTokens];
    };
    // The prompt's, and the newest one of what was generated.
    expect([0, 2, 3, 6, 7, 8].map(draft)).toEqual([
      [2, 8],
      [2, 8],
      [2, 12],
      [2, 12],
      [2, 16],
      [2, 16],
    ]);
  });

  it('begin where the rows of the draft before were right', () => {
    const kv = manager();
    kv.addSequence(1n, 6, key(tokens(6)));
    const pass = (start: number, end: number, drafts: number) =>
      kv.states!.pass(1n, span(start, end, drafts));
    expect(pass(0, 6, 0)).toBe(0);
    expect(pass(6, 11, 4)).toBe(0);
    // Three of four were right.
    expect(pass(10, 13, 2)).toBe(3);
    // None was.
    expect(pass(11, 12, 0)).toBe(0);
    expect(pass(12, 13, 0)).toBe(0);
    // A draft that grows from step to step.
    expect([pass(13, 14, 1), pass(14, 15, 2), pass(15, 16, 3)]).toEqual([0, 1, 2]);
    // Two of its three tokens were right, and the next step has a row that is certain.
    expect(pass(15, 17, 1)).toBe(2);
    expect(pass(17, 18, 0)).toBe(1);
  });

  it('are kept where a prompt leaves cached blocks, so that the third begins there', () => {
    const kv = manager();
    const common = tokens(12);
    const prompt = (seed: number) => Int32Array.of(...common, ...tokens(6, seed));
    expect(run(kv, 1n, prompt(1))).toEqual({ reusedTokens: 0, places: [16] });
    expect(run(kv, 2n, prompt(2))).toEqual({ reusedTokens: 0, places: [12, 16] });
    expect(run(kv, 3n, prompt(3))).toEqual({ reusedTokens: 12, places: [16] });
  });

  it('have those who leave cached blocks at the same place wait for the first of them', () => {
    const kv = manager();
    const common = tokens(12);
    const prompt = (seed: number) => Int32Array.of(...common, ...tokens(6, seed));
    run(kv, 1n, prompt(1));
    const missing = (seed: number) => kv.firstMissingBlock(key(prompt(seed)), 18);
    expect(missing(2)).toBe(missing(3));
    const before = kv.cacheVersion;
    run(kv, 2n, prompt(2));
    expect(kv.cacheVersion).not.toBe(before);
    expect(missing(3)).not.toBe(missing(4));
  });

  it('are copied for a sequence that goes on from them', () => {
    const kv = manager();
    run(kv, 1n, tokens(18));
    kv.addSequence(2n, 18, key(tokens(18)));
    const copies = kv.states!.drainCopies()!;
    expect([...copies.target]).toEqual([kv.states!.slotOf(2n)]);
    expect(copies.source[0]).toBeGreaterThanOrEqual(kv.states!.numSlots);
    expect(kv.states!.drainCopies()).toBeNull();
  });

  it('are copied for sequences that part, into slots that they hold', () => {
    const kv = manager();
    kv.addSequence(1n, 6, undefined, 3);
    const slots = [0, 1, 2].map((index) => kv.states!.slotOf(1n, index));
    expect(new Set(slots).size).toBe(3);
    kv.forkSequences(1n, [0, 0, 0]);
    expect(kv.states!.drainCopies()).toEqual({
      source: Int32Array.of(slots[0]!, slots[0]!),
      target: Int32Array.of(slots[1]!, slots[2]!),
    });
    kv.forkSequences(1n, [1, 1, 0]);
    expect([0, 1, 2].map((index) => kv.states!.slotOf(1n, index))).toEqual([slots[1], slots[2], slots[0]]);
    expect(kv.states!.drainCopies()).toEqual({
      source: Int32Array.of(slots[1]!),
      target: Int32Array.of(slots[2]!),
    });
    kv.forkSequences(1n, [2]);
    expect(kv.capacity().freeStateSlots).toBe(3);
    kv.freeSequence(1n);
    expect(kv.capacity().freeStateSlots).toBe(4);
    kv.checkIntegrity();
  });

  it('leave no room for a sequence without a slot, which takes no blocks', () => {
    const kv = manager({ numSlots: 1 });
    expect(kv.addSequence(1n, 5)).toBe(true);
    const { freeBlocks } = kv;
    expect(kv.addSequence(2n, 5)).toBe(false);
    expect(kv.freeBlocks).toBe(freeBlocks);
    kv.freeSequence(1n);
    expect(kv.addSequence(2n, 5)).toBe(true);
  });

  it('of the lowest priority go when a slot is needed, then those used longest ago', () => {
    const kv = manager({ numSnapshots: 2 });
    run(kv, 1n, tokens(6, 1));
    run(kv, 2n, tokens(6, 2));
    run(kv, 1n, tokens(6, 1));
    run(kv, 3n, tokens(6, 3));
    expect(run(kv, 4n, tokens(6, 1)).reusedTokens).toBe(4);
    expect(run(kv, 5n, tokens(6, 2)).reusedTokens).toBe(0);
    const low = manager({ numSnapshots: 2 });
    run(low, 1n, tokens(6, 1));
    run(low, 2n, tokens(6, 2), 0, { ranges: [{ start: 0, priority: 10 }] });
    run(low, 3n, tokens(6, 3));
    expect(run(low, 4n, tokens(6, 1)).reusedTokens).toBe(4);
    expect(run(low, 5n, tokens(6, 2)).reusedTokens).toBe(0);
  });

  it('are kept of a prompt that is paused between chunks, which goes on from the newest of them', () => {
    const kv = manager();
    const prompt = tokens(38);
    kv.addSequence(1n, 38, key(prompt));
    expect(kv.states!.takeSnapshots(1n, span(0, 15))).toEqual([]);
    expect(kv.states!.pendingSlots(1n)).toHaveLength(0);
    const [snapshot] = kv.states!.takeSnapshots(1n, span(15, 30));
    expect(snapshot!.position).toBe(16);
    expect([...kv.states!.pendingSlots(1n)]).toEqual([snapshot!.slot]);
    kv.store(1n, prompt, 30);
    expect(kv.states!.pendingSlots(1n)).toHaveLength(0);
    kv.freeSequence(1n);
    kv.checkIntegrity();
    // The blocks after the snapshot are there too, without states: where they end another snapshot is made.
    expect(run(kv, 1n, prompt)).toEqual({ reusedTokens: 16, places: [28, 32, 36] });
    expect(run(kv, 2n, prompt).reusedTokens).toBe(36);
  });

  it('of what was never found finite are given back', () => {
    const kv = manager({ numSnapshots: 3 });
    for (let request = 1n; request < 9n; request++) {
      kv.addSequence(request, 38, key(tokens(38)));
      expect(kv.states!.takeSnapshots(request, span(0, 38))).toHaveLength(3);
      kv.freeSequence(request);
      kv.checkIntegrity();
    }
    expect(run(kv, 9n, tokens(38)).reusedTokens).toBe(0);
  });

  it('are forgotten with the cache', () => {
    const kv = manager();
    kv.addSequence(1n, 18, key(tokens(18)));
    kv.states!.takeSnapshots(1n, span(0, 18));
    run(kv, 2n, tokens(18, 2));
    kv.dropReusable();
    kv.checkIntegrity();
    kv.store(1n, tokens(18), 18);
    kv.freeSequence(1n);
    kv.checkIntegrity();
    expect(run(kv, 3n, tokens(18)).reusedTokens).toBe(0);
    expect(run(kv, 4n, tokens(18, 2)).reusedTokens).toBe(0);
  });

  it('are told of in events behind that of their block, which tells nothing more when it goes', () => {
    const kv = manager({ numSnapshots: 1 });
    run(kv, 1n, tokens(6));
    const [, stored, kept] = kv.drainEvents();
    const { data } = stored!;
    const [{ blockHash }] =
      data.type === 'stored' ? (data.blocks as [StoredBlock]) : expect.fail('not stored');
    expect(kept!.data).toEqual({
      ...{ type: 'updated', blockHash },
      hasState: { oldValue: false, newValue: true },
    });
    run(kv, 2n, tokens(6, 1));
    expect(kv.drainEvents().map((event) => event.data)).toMatchObject([
      { type: 'updated', blockHash, hasState: { oldValue: true, newValue: false } },
      { type: 'stored' },
      { type: 'updated', hasState: { oldValue: false, newValue: true } },
    ]);
    kv.dropReusable();
    expect(kv.drainEvents().map((event) => event.data.type)).toEqual(['removed']);
  });

  it('without snapshots share nothing', () => {
    const kv = manager({ numSnapshots: 0 });
    expect(kv.enableBlockReuse).toBe(false);
    expect(kv.addSequence(1n, 18, key(tokens(18)))).toBe(true);
    expect(kv.states!.takeSnapshots(1n, span(0, 18))).toEqual([]);
  });

  // Against an oracle that computes states from tokens: what a sequence begins with is the state of its own tokens.
  it('are those of the tokens before them in any history', () => {
    for (let seed = 1; seed <= 40; seed++) expectRightStates(seed);
  });
});

/** Follows the events of a cache: the hashes of blocks with states after them, as a listener knows them. */
function followStates() {
  const known = new Set<number>();
  const take = (events: readonly KvCacheEvent[]) => {
    for (const { data } of events) {
      if (data.type === 'removed') for (const hash of data.blockHashes) known.delete(hash);
      if (data.type !== 'updated' || !('hasState' in data)) continue;
      const { oldValue, newValue } = data.hasState;
      expect([oldValue, newValue]).toEqual([known.has(data.blockHash), !known.has(data.blockHash)]);
      if (newValue) known.add(data.blockHash);
      else known.delete(data.blockHash);
    }
    return known.size;
  };
  return { take };
}

/** The state after some tokens, as one number. */
const stateOf = (of: Int32Array, length: number) =>
  of.subarray(0, length).reduce((state, token) => (Math.imul(state, 31) + token) | 0, 7);

function expectRightStates(seed: number): void {
  const random = randomNumbers(seed);
  const integer = (most: number) => Math.floor(random() * most);
  const kv = manager({
    numSlots: 3,
    numSnapshots: 1 + integer(5),
    numBlocks: 20,
    numSecondaryBlocks: integer(2) * 8,
  });
  const listener = followStates();
  const slots = new Map<number, number>();
  const running = new Map<bigint, { tokens: Int32Array; prompt: number; at: number }>();
  const copy = () => {
    const { source = [], target = [] } = kv.states!.drainCopies() ?? {};
    for (const [i, from] of source.entries()) slots.set(target[i]!, slots.get(from)!);
    kv.drainCopies();
  };
  /** Computes tokens up to `end` and a draft after them, of which the first `right` ones are right. */
  const step = (requestId: bigint, end: number, drafts = 0, right = 0) => {
    const sequence = running.get(requestId)!;
    const own = span(sequence.at, end + drafts, drafts);
    const replays = kv.states!.pass(requestId, own);
    const snapshots = kv.states!.takeSnapshots(requestId, own);
    copy();
    const slot = kv.states!.slotOf(requestId);
    const kept = sequence.at - replays;
    if (kept > 0) expect(slots.get(slot), `seed ${seed}`).toBe(stateOf(sequence.tokens, kept));
    const drafted = sequence.tokens.map((token, place) => (place === end + right ? -1 : token));
    for (const one of snapshots) slots.set(one.slot, stateOf(drafted, one.position));
    slots.set(slot, stateOf(sequence.tokens, end));
    sequence.at = end + right;
    if (drafts > 0) kv.trimSequence(requestId, sequence.at);
  };
  for (let next = 1n; next < 60n; next++) {
    const all = Int32Array.of(...tokens(4 * integer(5), integer(2)), ...tokens(1 + integer(20), integer(3)));
    const prompt = 1 + integer(all.length);
    if (kv.addSequence(next, prompt, key(all))) {
      const { reusedTokens } = kv.reuseOf(next);
      running.set(next, { tokens: all, prompt, at: reusedTokens });
      while (running.get(next)!.at < prompt)
        step(next, Math.min(prompt, running.get(next)!.at + 1 + integer(12)));
      kv.store(next, all, prompt);
    }
    for (const [requestId, sequence] of running) {
      const { at, tokens: own } = sequence;
      const drafts = Math.min(integer(8), own.length - at - 1);
      if (at < own.length && random() < 0.7 && kv.growSequence(requestId, at + 1 + drafts))
        step(requestId, at + 1, drafts, integer(drafts + 1));
      if (random() < 0.25) {
        kv.store(requestId, own, sequence.at);
        kv.freeSequence(requestId);
        running.delete(requestId);
      }
    }
    if (random() < 0.03) kv.dropReusable();
    kv.checkIntegrity();
    expect(listener.take(kv.drainEvents())).toBe(kv.stats().states!.keptSnapshots);
  }
}
