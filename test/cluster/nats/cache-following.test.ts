import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CacheFollower } from '../../../cluster/nats/cache-follower.js';
import {
  type CacheAsk,
  type CacheChange,
  type CachePart,
  MAX_CACHE_BLOCKS,
} from '../../../cluster/nats/cache-messages.js';
import { CacheTeller } from '../../../cluster/nats/cache-teller.js';
import type { KvCacheEvent, KvCacheEventData } from '../../../kvcache/cache-events.js';
import { draws } from '../../support/scale.js';

const stored = (...hashes: number[]): KvCacheEventData => ({
  type: 'stored',
  parentHash: null,
  blocks: hashes.map((blockHash) => ({
    ...{ blockHash, tokens: [], loraId: null, cacheSalt: 0n, cacheLevel: 0, priority: 35 },
  })),
});
const removed = (...blockHashes: number[]): KvCacheEventData => ({ type: 'removed', blockHashes });
const created: KvCacheEventData = { type: 'created', numBlocksPerCacheLevel: [4] };

/** A worker's cache that is published, and every cache that it had, by its number. */
class Told {
  readonly sent: CacheChange[] = [];
  readonly caches: number[][] = [[]];
  readonly teller: CacheTeller;
  #nextId = 0;
  #now = new Set<number>();

  constructor(maxInMessage = 3, maxBlocks = 1000) {
    const send = (change: CacheChange) => {
      this.sent.push(change);
      // What a gateway makes of it that misses nothing.
      if (change.isAnew) this.#now = new Set();
      for (const hash of change.removed) this.#now.delete(hash);
      for (const hash of change.stored) this.#now.add(hash);
      this.caches[change.next] = sorted(this.#now);
    };
    this.teller = new CacheTeller({ worker: 'w', send, maxInMessage, maxBlocks });
  }

  /** @param lost events that were lost before these */
  note(data: readonly KvCacheEventData[], lost = 0): void {
    this.#nextId += lost;
    if (data[0]?.type === 'created') this.#nextId = 0;
    this.teller.note(data.map((one): KvCacheEvent => ({ eventId: this.#nextId++, data: one })));
  }

  get latest(): number[] {
    return this.caches.at(-1)!;
  }
}

const sorted = (set: Iterable<number>) => [...set].sort((a, b) => a - b);

function follow() {
  const blocks = new Set<number>();
  const follower = new CacheFollower({
    clear: () => blocks.clear(),
    add: (hash) => blocks.add(hash),
    remove: (hash) => blocks.delete(hash),
  });
  return { follower, blocks };
}

/** Asks until there is nothing to ask for. */
function catchUp(follower: CacheFollower, teller: CacheTeller): (CacheChange | CachePart)[] {
  const answers: (CacheChange | CachePart)[] = [];
  follower.onBeat(teller.number);
  while (follower.isBehind) {
    const answer = teller.answer(follower.ask());
    answers.push(answer);
    expect(follower.onAnswer(answer)).toBe(true);
  }
  return answers;
}

describe('a cache that is told', () => {
  it('is followed change by change', () => {
    const told = new Told(10);
    const { follower, blocks } = follow();
    told.note([created, stored(1, 2), stored(3)]);
    told.note([removed(2), stored(4), removed(4)]);
    told.note([]);
    told.note([{ type: 'updated', blockHash: 1, priority: { oldValue: 1, newValue: 2 } }]);
    expect(told.sent.map(({ from, next, isAnew }) => [from, next, isAnew])).toEqual([
      [0, 1, true],
      [1, 2, false],
    ]);
    for (const change of told.sent) follower.onChange(change);
    expect(sorted(blocks)).toEqual([1, 3]);
    expect(follower.isBehind).toBe(false);
  });

  it('is forgotten with its engine, and if events of it were lost', () => {
    const told = new Told(10);
    told.note([created, stored(1, 2)]);
    told.note([stored(5)], 1);
    expect(told.latest).toEqual([5]);
    told.teller.lose();
    expect(told.latest).toEqual([]);
    told.note([created, stored(1)]);
    expect(told.latest).toEqual([1]);
    expect(told.sent.map(({ isAnew }) => isAnew)).toEqual([true, true, true, true]);
  });

  it('is told again from where a gateway has missed something', () => {
    const told = new Told(10);
    const { follower, blocks } = follow();
    told.note([created, stored(1, 2)]);
    follower.onChange(told.sent[0]!);
    for (const hash of [3, 4, 5]) told.note([stored(hash)]);
    told.note([removed(1)]);
    // The one that shows the gap changes nothing.
    follower.onChange(told.sent[4]!);
    expect(sorted(blocks)).toEqual([1, 2]);
    expect(follower.isBehind).toBe(true);
    const answers = catchUp(follower, told.teller);
    expect(answers).toMatchObject([{ kind: 'cacheChange', from: 1, next: 5, isAnew: false }]);
    expect(sorted(blocks)).toEqual([2, 3, 4, 5]);
  });

  it('is told as a whole, in parts, to a gateway that has nothing, while it changes', () => {
    const told = new Told(3);
    told.note([created, stored(1, 2, 3, 4, 5, 6, 7)]);
    const { follower, blocks } = follow();
    follower.onBeat(told.teller.number);
    const first = told.teller.answer(follower.ask());
    expect(first).toMatchObject({ kind: 'cachePart', offset: 0, total: 7 });
    follower.onAnswer(first);
    told.note([removed(1, 7)]);
    follower.onChange(told.sent.at(-1)!);
    expect(blocks.size).toBe(0);
    const second = told.teller.answer(follower.ask());
    expect(second).toMatchObject({ kind: 'cachePart', offset: 3 });
    follower.onAnswer(second);
    follower.onAnswer(told.teller.answer(follower.ask()));
    expect(sorted(blocks)).toEqual([2, 3, 4, 5, 6]);
    expect(follower.isBehind).toBe(false);
  });

  it('is believed no more when nobody answers', () => {
    const told = new Told(10);
    const { follower, blocks } = follow();
    told.note([created, stored(1)]);
    follower.onChange(told.sent[0]!);
    follower.onBeat(9);
    follower.ask();
    follower.onUnanswered();
    expect(blocks.size).toBe(0);
    expect(follower.number).toBeNull();
  });

  it('is told up to a bound', () => {
    const told = new Told(10, 2);
    told.note([created, stored(1, 2, 3)]);
    expect(told.latest).toEqual([1, 2]);
    // A block that was never reported is not taken back.
    told.note([removed(3)]);
    expect(told.sent).toHaveLength(1);
    told.note([removed(1), stored(4)]);
    expect(told.latest).toEqual([2, 4]);
  });
});

describe('a cache of a model with states', () => {
  const updated = (blockHash: number, newValue: boolean): KvCacheEventData => ({
    ...{ type: 'updated', blockHash, hasState: { oldValue: !newValue, newValue } },
  });

  it('is told with the blocks behind which they are kept, by changes and as a whole', () => {
    const told = new Told(3);
    const states = new Map<number, boolean | null>();
    const followed = {
      clear: () => states.clear(),
      add: (hash: number, hasState: boolean | null) => states.set(hash, hasState),
      remove: (hash: number) => states.delete(hash),
    };
    const follower = new CacheFollower(followed);
    told.note([created, stored(1, 2, 3)]);
    follower.onChange(told.sent[0]!);
    expect([...states]).toEqual([
      [1, null],
      [2, null],
      [3, null],
    ]);
    told.note([updated(2, true), updated(3, true)]);
    told.note([updated(3, false), updated(9, true), stored(4, 5)]);
    for (const change of told.sent.slice(1)) follower.onChange(change);
    const expected = [
      [1, null],
      [2, true],
      [3, false],
      [4, false],
      [5, false],
    ];
    expect([...states]).toEqual(expected);
    const late = new CacheFollower(followed);
    states.clear();
    // Too much has changed for one message: the whole is sent, in parts.
    expect(catchUp(late, told.teller).map(({ kind }) => kind)).toEqual(['cachePart', 'cachePart']);
    expect([...states]).toEqual([[1, false], ...expected.slice(1)]);
  });
});

describe('a worker that tells nonsense', () => {
  const part = (next: number, offset: number, total: number, blocks: number[]): CachePart => ({
    ...{ kind: 'cachePart', next, offset, total },
    blocks: Float64Array.from(blocks),
  });

  it.each<[string, CachePart[]]>([
    ['a part that is none', [part(3, 0, 5, [1]), part(3, 1, 5, [])]],
    ['parts of different wholes', [part(3, 0, 2, [1]), part(4, 1, 2, [2])]],
    ['a part twice', [part(3, 0, 3, [1]), part(3, 1, 3, [2]), part(3, 1, 3, [2])]],
    ['more than a cache may have', [part(3, 0, MAX_CACHE_BLOCKS + 1, [1])]],
  ])('is not believed: %s', (_, parts) => {
    const { follower, blocks } = follow();
    const progress = parts.map((one) => {
      follower.ask();
      return follower.onAnswer(one);
    });
    expect(follower.number).toBeNull();
    expect(blocks.size).toBe(0);
    expect(follower.ask()).toEqual({ kind: 'cacheAsk', from: 0, whole: null });
    expect(progress.slice(0, -1)).not.toContain(false);
  });

  it('ends a whole that has no end', () => {
    const { follower } = follow();
    let count = 0;
    do follower.ask();
    while (follower.onAnswer(part(1, count, MAX_CACHE_BLOCKS, [count++])) && follower.ask().whole !== null);
    expect(count).toBeLessThan(2000);
  });

  it('is asked anew where its beats know nothing of what was told in its name', () => {
    const told = new Told(10);
    const { follower, blocks } = follow();
    told.note([created, stored(1, 2)]);
    follower.onChange(told.sent[0]!);
    const empty = new Float64Array(0);
    const forged = { kind: 'cacheChange', worker: 'w', from: 1, next: 2 ** 50, isAnew: false } as const;
    follower.onChange({ ...forged, stored: Float64Array.from([9]), removed: empty });
    told.note([stored(3)]);
    for (let beat = 0; beat < 3; beat++) follower.onBeat(told.teller.number);
    expect([follower.number, blocks.size]).toEqual([null, 0]);
    catchUp(follower, told.teller);
    expect(sorted(blocks)).toEqual([1, 2, 3]);
  });

  it('is asked no more than it brings further', () => {
    const { follower } = follow();
    follower.onBeat(Number.MAX_SAFE_INTEGER);
    follower.ask();
    const empty = new Float64Array(0);
    const change: CacheChange = {
      ...{ kind: 'cacheChange', worker: 'w', from: 0, next: 2, isAnew: false, stored: empty, removed: empty },
    };
    expect(follower.onAnswer(change)).toBe(true);
    follower.ask();
    expect(follower.onAnswer(change)).toBe(false);
  });
});

const EVENT = fc.oneof(
  fc.array(fc.nat(30), { minLength: 1, maxLength: 8 }).map((hashes) => stored(...hashes)),
  fc.array(fc.nat(30), { minLength: 1, maxLength: 8 }).map((hashes) => removed(...hashes)),
);
/** What happens next: at the worker, on the way, or at the gateway. */
const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('note' as const), events: fc.array(EVENT, { maxLength: 4 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { type: 'new' as const },
      { type: 'lostEvents' as const },
      { type: 'die' as const },
    ),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constantFrom('deliver' as const, 'repeat' as const, 'lose' as const),
      at: fc.nat(3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      { type: 'ask' as const },
      { type: 'answer' as const },
      { type: 'beat' as const },
    ),
  },
  { weight: 1, arbitrary: fc.constant({ type: 'silence' as const }) },
);

it('a gateway always has a cache that the worker had, whatever is lost, repeated or late', () => {
  let followed = 0;
  let wholes = 0;
  fc.assert(
    fc.property(fc.array(STEP, { minLength: 60, maxLength: 120 }), (steps) => {
      const told = new Told();
      const { follower, blocks } = follow();
      const way: CacheChange[] = [];
      let numSent = 0;
      let asked: CacheAsk | null = null;
      let answer: CacheChange | CachePart | null = null;
      for (const step of steps) {
        if (step.type === 'note') told.note(step.events);
        if (step.type === 'new') told.note([created]);
        if (step.type === 'lostEvents') told.note([stored(99)], 2);
        if (step.type === 'die') told.teller.lose();
        way.push(...told.sent.slice(numSent));
        numSent = told.sent.length;
        if ('at' in step && step.at < way.length) {
          if (step.type !== 'lose') follower.onChange(way[step.at]!);
          if (step.type !== 'repeat') way.splice(step.at, 1);
        }
        if (step.type === 'beat') follower.onBeat(told.teller.number);
        if (step.type === 'ask' && asked === null && follower.isBehind) asked = follower.ask();
        // The answer is made some time before it comes.
        else if (step.type === 'ask' && asked !== null) answer ??= told.teller.answer(asked);
        if (step.type === 'answer' && answer !== null) {
          if (answer.kind === 'cachePart') wholes += 1;
          follower.onAnswer(answer);
          [asked, answer] = [null, null];
        }
        if (step.type === 'silence' && asked !== null) {
          follower.onUnanswered();
          [asked, answer] = [null, null];
        }
        const expected = follower.number === null ? [] : told.caches[follower.number];
        expect(sorted(blocks)).toEqual(expected);
        if (blocks.size > 0) followed += 1;
      }
      if (asked !== null) follower.onUnanswered();
      catchUp(follower, told.teller);
      expect(sorted(blocks)).toEqual(told.latest);
    }),
    { seed: 26, numRuns: draws(83) },
  );
  expect(followed).toBeGreaterThan(draws(400));
  expect(wholes).toBeGreaterThan(draws(20));
});

it('a worker tells what its cache has, whatever its events', () => {
  fc.assert(
    fc.property(fc.array(fc.array(EVENT, { maxLength: 5 }), { maxLength: 30 }), (iterations) => {
      const told = new Told(2);
      const truth = new Set<number>();
      told.note([created]);
      for (const events of iterations) {
        told.note(events);
        for (const event of events) {
          if (event.type === 'stored') for (const { blockHash } of event.blocks) truth.add(blockHash);
          if (event.type === 'removed') for (const hash of event.blockHashes) truth.delete(hash);
        }
        expect(told.latest).toEqual(sorted(truth));
      }
    }),
    { seed: 27, numRuns: 150 },
  );
});
