import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CacheRouter } from '../../../cluster/routing/cache-router.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import type { KvCacheEvent } from '../../../kvcache/cache-events.js';
import { cache, count, run, SIZE } from '../../support/reusing-cache.js';
import { draws } from '../../support/scale.js';
import { SlowRouter } from './slow-router.js';

const PLAIN = { salt: 0n };
const stored = (hashes: number[]): KvCacheEvent => ({
  eventId: 0,
  data: {
    type: 'stored',
    parentHash: null,
    blocks: hashes.map((blockHash) => ({
      ...{ blockHash, tokens: [], loraId: null, cacheSalt: 0n, cacheLevel: 0, priority: 35 },
    })),
  },
});
const stateOf = (blockHash: number, newValue: boolean): KvCacheEvent => ({
  eventId: 0,
  data: { type: 'updated', blockHash, hasState: { oldValue: !newValue, newValue } },
});
const router = (...workers: string[]) => {
  const made = new CacheRouter({ blockTime: 2, requestTime: 5 });
  for (const worker of workers) made.add(worker);
  return made;
};

describe('a router that knows the caches', () => {
  it('takes into account what others send, and what went to a worker without its choice', () => {
    const made = router('a', 'b');
    made.noteOthers('a', 3);
    expect(made.route({ id: 'x', hashes: [] })!.worker).toBe('b');
    made.assign({ id: 'y', hashes: [1, 2] }, 'b');
    expect([made.requestsAt('a'), made.requestsAt('b'), made.requestsAt('nobody')]).toEqual([0, 2, 0]);
    // What was assigned will be cached there.
    expect(made.route({ id: 'z', hashes: [1, 2, 3] })).toEqual({ worker: 'b', cachedBlocks: 2 });
    expect(() => made.assign({ id: 'z', hashes: [] }, 'a')).toThrow('The request z is under way already.');
    made.assign({ id: 'nowhere', hashes: [] }, 'nobody');
    expect(made.underway).toBe(3);
    for (const id of ['x', 'y', 'z']) made.end(id);
    made.noteOthers('a', 0);
    const blocks = made.blocksOf('a');
    for (const hash of [7, 8]) blocks.add(hash);
    expect(made.route({ id: 'v', hashes: [7, 8] })).toEqual({ worker: 'a', cachedBlocks: 2 });
    made.end('v');
    blocks.remove(8);
    expect(made.knownBlocks).toBe(1);
    blocks.clear();
    expect(made.knownBlocks).toBe(0);
    expect(made.requestsAt('a')).toBe(0);
  });

  it('counts the blocks that a cache tells of, by the same hashes', () => {
    const kv = cache({ numBlocks: 12 });
    const made = router('a', 'b', 'c');
    run(kv, 1n, count(30));
    made.note('b', kv.drainEvents());
    const hashes = promptHashes(PLAIN, count(60), SIZE);
    expect(hashes).toHaveLength(7);
    expect(promptHashes(PLAIN, count(56), SIZE)).toEqual(hashes.slice(0, 6));
    expect(made.route({ id: 'x', hashes })).toEqual({ worker: 'b', cachedBlocks: 3 });
    const others = [{ salt: 1n }, { salt: 0n, loraId: 1n }].map((key) => promptHashes(key, count(60), SIZE));
    for (const [index, other] of others.entries()) {
      expect(made.route({ id: `o${index}`, hashes: other })).toMatchObject({ cachedBlocks: 0 });
    }
  });

  it('weighs what is cached against the queue', () => {
    const made = new CacheRouter({ blockTime: 2, requestTime: 5, workWeight: 0 });
    for (const worker of ['a', 'b']) made.add(worker);
    made.note('a', [stored([1, 2])]);
    const hashes = [1, 2, 3];
    // At a: 1 block = 2; at b: 3 blocks = 6.
    expect(made.route({ id: '1', hashes })?.worker).toBe('a');
    // At a: nothing but the block of request 1, and its own time = 7; at b: 6.
    expect(made.route({ id: '2', hashes })?.worker).toBe('b');
    made.firstToken('1');
    // At a: its prompt is computed, but no event has reported that: 1 block and the request = 7; at b: 3
    // blocks and the request = 11.
    expect(made.route({ id: '3', hashes })).toEqual({ worker: 'a', cachedBlocks: 2 });
    made.end('1');
    made.end('3');
    expect(made.underway).toBe(1);
  });

  it('sends equal prompts that come together to one worker, and others in turns', () => {
    const made = router('a', 'b', 'c');
    const long = Array.from({ length: 50 }, (_, index) => index);
    const places = [1, 2, 3].map((id) => made.route({ id: `${id}`, hashes: long })?.worker);
    expect(new Set(places).size).toBe(1);
    const idle = router('a', 'b', 'c');
    const turns = [1, 2, 3].map((id) => {
      const { worker } = idle.route({ id: `${id}`, hashes: [id] })!;
      idle.end(`${id}`);
      return worker;
    });
    expect(new Set(turns)).toEqual(new Set(['a', 'b', 'c']));
  });

  it('asks nobody who may not, and has an answer where there is nobody', () => {
    expect(router().route({ id: '1', hashes: [] })).toBeNull();
    const made = router('a', 'b');
    expect(made.route({ id: '1', hashes: [] }, () => false)).toBeNull();
    expect(made.route({ id: '1', hashes: [] }, (name) => name === 'b')?.worker).toBe('b');
    expect(() => made.route({ id: '1', hashes: [] })).toThrow('under way already');
    expect(made.remove('b')).toEqual(['1']);
    expect(made.remove('b')).toEqual([]);
    expect([made.underway, made.workers]).toEqual([0, ['a']]);
  });

  it('looks at no more workers than it may where many have a beginning', () => {
    const made = new CacheRouter({ blockTime: 2, requestTime: 5, fewHolders: 2, mostLooked: 8 });
    const nameOf = (index: number) => `w${index}`;
    for (let index = 0; index < 100; index += 1) {
      made.add(nameOf(index));
      if (index % 2 === 1) made.note(nameOf(index), [stored([1, 2, 3])]);
      made.noteOthers(nameOf(index), index === 51 ? 0 : 1);
    }
    // It has least to do, so that it is looked at first, and is the cheapest of all.
    expect(made.route({ id: '1', hashes: [1, 2, 3] })).toEqual({ worker: 'w51', cachedBlocks: 3 });
    expect(made.mostCached([1, 2, 3])).toBe(3);
    // More idle ones have none of it than are looked at; those that have it most lately are looked at too.
    for (let index = 0; index < 100; index += 2) made.noteOthers(nameOf(index), 0);
    const late = made.route({ id: '2', hashes: [1, 2, 3] });
    expect(late!.cachedBlocks).toBe(3);
    expect(Number(late!.worker.slice(1))).toBeGreaterThan(80);
    // None of those may have it: the others count as if they had none, where they are not looked at.
    for (let index = 81; index < 100; index += 2) made.setOpen(nameOf(index), false);
    expect(Number(made.route({ id: '3', hashes: [1, 2, 3] })!.worker.slice(1)) % 2).toBe(0);
    // With few open ones each of them is looked at.
    for (let index = 0; index < 100; index += 1) made.setOpen(nameOf(index), index % 20 === 1);
    expect(made.route({ id: '4', hashes: [1, 2, 3] })!.cachedBlocks).toBe(3);
  });

  it('notes no more blocks than it may', () => {
    const made = new CacheRouter({ blockTime: 1, requestTime: 1, maxBlocks: 3 });
    made.add('a');
    made.note('a', [stored([1, 2, 3, 4, 5])]);
    expect(made.knownBlocks).toBe(3);
    expect(made.route({ id: '1', hashes: [1, 2, 3, 4] })).toEqual({ worker: 'a', cachedBlocks: 3 });
  });
});

describe('a router of models that keep states', () => {
  it('counts blocks up to the last one behind which they are kept', () => {
    const made = router('a', 'b');
    made.note('a', [stored([1, 2, 3, 4]), stateOf(2, true), stateOf(4, true), stateOf(4, false)]);
    made.note('b', [stored([1, 2, 3]), stateOf(3, true)]);
    // a has more blocks, and has to compute all after the second one.
    expect(made.route({ id: 'x', hashes: [1, 2, 3, 4] })).toEqual({ worker: 'b', cachedBlocks: 3 });
    made.end('x');
    made.note('b', [stateOf(3, false)]);
    expect(made.route({ id: 'x', hashes: [1, 2, 3, 4] })).toEqual({ worker: 'a', cachedBlocks: 2 });
    // What goes there is expected to be of use to later requests.
    expect(made.route({ id: 'y', hashes: [1, 2, 3, 4, 5] })).toEqual({ worker: 'a', cachedBlocks: 4 });
    for (const id of ['x', 'y']) made.end(id);
    made.forget('a');
    expect(made.mostCached([1, 2, 3, 4])).toBe(0);
    // The same names for another model, which keeps none.
    made.remove('a');
    made.add('a');
    made.note('a', [stored([1, 2])]);
    expect(made.mostCached([1, 2, 3, 4])).toBe(2);
  });
});

describe('a router that knows the caches, in random histories', () => {
  const hash = fc.integer({ min: 1, max: 6 });
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g');
  const step = fc.oneof(
    fc.record({
      do: fc.constant('route' as const),
      hashes: fc.array(hash, { maxLength: 6 }),
      not: fc.option(name),
    }),
    fc.record({ do: fc.constantFrom('add' as const, 'remove' as const, 'forget' as const), name }),
    fc.record({
      do: fc.constantFrom('stored' as const, 'removed' as const, 'hasState' as const, 'hasNone' as const),
      name,
      hashes: fc.array(hash, { minLength: 1, maxLength: 4 }),
    }),
    fc.record({ do: fc.constantFrom('firstToken' as const, 'end' as const), which: fc.nat() }),
  );

  it('decides as one that counts everything anew, and keeps nothing of what has gone', () => {
    let routed = 0;
    const times = fc.record({
      block: fc.integer({ min: 0, max: 4 }),
      request: fc.integer({ min: 0, max: 9 }),
      work: fc.integer({ min: 0, max: 2 }),
      few: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(
        times,
        fc.array(step, { minLength: 10, maxLength: 60 }),
        ({ block, request, work, few }, steps) => {
          const fast = new CacheRouter({
            ...{ blockTime: block, requestTime: request, workWeight: work, fewHolders: few },
          });
          const slow = new SlowRouter(block, request, work);
          for (const worker of ['a', 'b', 'c', 'd', 'e']) {
            fast.add(worker);
            slow.add(worker);
          }
          for (const [index, one] of steps.entries()) {
            if (one.do === 'route') {
              const mayHave = (worker: string) => worker !== one.not;
              const found = fast.route({ id: `${index}`, hashes: one.hashes }, mayHave);
              expect(found).toEqual(slow.route(`${index}`, one.hashes, mayHave));
              if (found !== null) routed += 1;
            } else if ('which' in one) {
              const ids = [...slow.sent.keys()];
              const id = ids[one.which % Math.max(1, ids.length)] ?? 'nobody';
              fast[one.do](id);
              if (one.do === 'end') slow.sent.delete(id);
              else if (slow.sent.has(id)) slow.sent.get(id)!.hasFirstToken = true;
            } else if ('hashes' in one) {
              const { hashes } = one;
              const removed: KvCacheEvent = { eventId: 0, data: { type: 'removed', blockHashes: hashes } };
              const events =
                one.do === 'stored'
                  ? [stored(hashes)]
                  : one.do === 'removed'
                    ? [removed]
                    : hashes.map((hash) => stateOf(hash, one.do === 'hasState'));
              fast.note(one.name, events);
              slow.note(one.name, events);
            } else {
              expect(fast[one.do](one.name) ?? null).toEqual(slow[one.do](one.name) ?? null);
            }
            expect(fast.underway).toBe(slow.sent.size);
            const known = slow.places.reduce((sum, worker) => sum + (worker?.blocks.size ?? 0), 0);
            expect(fast.knownBlocks).toBe(known);
          }
          for (const id of slow.sent.keys()) fast.end(id);
          for (const worker of fast.workers) fast.remove(worker);
          expect([fast.underway, fast.knownBlocks, fast.workers]).toEqual([0, 0, []]);
        },
      ),
      { seed: 26, numRuns: draws(100) },
    );
    expect(routed).toBeGreaterThan(draws(200));
  });
});
