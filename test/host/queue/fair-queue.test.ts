import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../host/queue/fair-queue.js';
import { ArrivalQueue, type Waiting } from '../../../host/queue/waiting-queue.js';

interface Item extends Waiting {
  name: string;
}

const item = (name: string, key: string, cost: number, more: Partial<Waiting> = {}): Item => {
  return { name, key, cost, weight: 1, priority: 0.5, ...more };
};
const names = (items: readonly Item[]) => items.map(({ name }) => name).join(' ');

function queueOf(items: readonly Item[], quantum: number): FairQueue<Item> {
  const queue = new FairQueue<Item>(quantum);
  for (const one of items) queue.push(one);
  return queue;
}

describe('the order of a fair queue', () => {
  it('is round robin in tokens, as its drawing shows', () => {
    const a = Array.from({ length: 9 }, (_, index) => item(`a${index}`, 'A', 40));
    const b = Array.from({ length: 3 }, (_, index) => item(`b${index}`, 'B', 90));
    const queue = queueOf([...a, ...b, item('c', 'C', 250)], 100);
    expect(names(queue.take(13))).toBe('a0 a1 b0 a2 a3 b1 a4 b2 c a5 a6 a7 a8');
  });

  it('lets a key that comes in wait for one turn of another, however many of it wait', () => {
    const queue = queueOf(
      Array.from({ length: 100 }, (_, index) => item(`a${index}`, 'A', 50)),
      100,
    );
    expect(queue.take(10)).toHaveLength(10);
    queue.push(item('b', 'B', 80));
    expect(names(queue.take(3))).toMatch(/\bb\b/);
  });

  it('is that of priorities and arrivals within a key, and for one key alone', () => {
    const items = [0.5, 0.9, 0.5, 0.1, 0.9].map((priority, index) => item(`${index}`, 'A', 30, { priority }));
    const fair = queueOf(items, 100);
    const plain = new ArrivalQueue<Item>();
    for (const one of items) plain.push(one);
    expect(names(fair.take(-1))).toBe('1 4 0 2 3');
    expect(names(plain.take(-1))).toBe('1 4 0 2 3');
  });

  it('gives back what was charged and not used, over several turns', () => {
    const a = Array.from({ length: 40 }, (_, index) => item(`a${index}`, 'A', 100));
    const b = Array.from({ length: 40 }, (_, index) => item(`b${index}`, 'B', 100));
    const queue = queueOf([...a, ...b], 100);
    const first = queue.take(4);
    for (const one of first) queue.settle(one, one.key === 'A' ? 0 : 100);
    // A has 200 tokens back, and takes two requests before the next round.
    expect(names(first).replaceAll(/\d+/g, '')).toBe('a b a b');
    expect(names(queue.take(2)).replaceAll(/\d+/g, '')).toBe('a a');
  });

  it('gives nothing back for what nobody else wanted', () => {
    const queue = queueOf(
      Array.from({ length: 60 }, (_, index) => item(`a${index}`, 'A', 1000)),
      100,
    );
    const alone = queue.take(30);
    for (let index = 0; index < 10; index++) queue.push(item(`b${index}`, 'B', 100));
    for (const one of alone) queue.settle(one, 1);
    expect(names(queue.take(9)).replaceAll(/\d+/g, '')).toBe('b b b b b b b b b');
  });
});

const KEYS = ['A', 'B', 'C', 'D'];
const QUANTUM = 500;
const MAX_COST = 1000;

const load = fc.record({
  weights: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 4, maxLength: 4 }),
  /** Share of its charge that each key's requests really use, in percent. */
  used: fc.array(fc.integer({ min: 5, max: 100 }), { minLength: 4, maxLength: 4 }),
  costs: fc.array(fc.integer({ min: 10, max: MAX_COST }), { minLength: 40, maxLength: 40 }),
  places: fc.integer({ min: 1, max: 16 }),
});

describe('properties of a fair queue', () => {
  it('keys that always wait get tokens by their weights in the long run, by what was really used', () => {
    fc.assert(
      fc.property(load, ({ weights, used, costs, places }) => {
        const queue = new FairQueue<Item>(QUANTUM);
        const service = new Map(KEYS.map((key) => [key, 0]));
        let next = 0;
        const refill = (index: number) => {
          const cost = costs[next++ % costs.length]!;
          queue.push(item('', KEYS[index]!, cost, { weight: weights[index]! }));
        };
        for (const index of KEYS.keys()) for (let count = 0; count < 30; count++) refill(index);
        const running: Item[] = [];
        for (let step = 0; step < 1000; step++) {
          while (running.length < places) {
            const [taken] = queue.take(1);
            running.push(taken!);
            refill(KEYS.indexOf(taken!.key));
          }
          const ended = running.shift()!;
          const index = KEYS.indexOf(ended.key);
          const tokens = Math.ceil((ended.cost * used[index]!) / 100);
          service.set(ended.key, service.get(ended.key)! + tokens);
          queue.settle(ended, tokens);
        }
        const shares = KEYS.map((key, index) => service.get(key)! / weights[index]!);
        // In flight, in the present round, and given back but not spent.
        const total = shares.reduce((sum, share) => sum + share, 0) / KEYS.length;
        const slack = (places + 2) * MAX_COST + 4 * QUANTUM;
        for (const share of shares) expect(Math.abs(share - total)).toBeLessThan(slack);
      }),
      { numRuns: 40 },
    );
  });

  it('always gives out something while something waits, each request once, nothing twice', () => {
    const operation = fc.record({
      kind: fc.constantFrom('push', 'push', 'push', 'take', 'remove', 'settle'),
      key: fc.constantFrom(...KEYS),
      cost: fc.integer({ min: 1, max: 100_000 }),
      priority: fc.constantFrom(0.1, 0.5, 0.9),
      count: fc.integer({ min: -1, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200, size: 'max' }), (operations) => {
        const queue = new FairQueue<Item>(QUANTUM);
        const waiting = new Set<Item>();
        const taken: Item[] = [];
        for (const { kind, key, cost, priority, count } of operations) {
          if (kind === 'push') {
            const one = item('', key, cost, { priority });
            queue.push(one);
            waiting.add(one);
          } else if (kind === 'take') {
            const got = queue.take(count);
            expect(got).toHaveLength(count < 0 ? waiting.size : Math.min(count, waiting.size));
            for (const one of got) expect(waiting.delete(one)).toBe(true);
            taken.push(...got);
          } else if (kind === 'remove') {
            const [one] = waiting;
            if (one) expect(queue.remove(one)).toBe(waiting.delete(one));
            if (taken[0]) expect(queue.remove(taken[0])).toBe(false);
          } else if (taken.length > 0) queue.settle(taken.shift()!, cost);
          if (queue.size !== waiting.size) expect(queue.size).toBe(waiting.size);
        }
        for (const key of KEYS) {
          expect(queue.sizeOf(key)).toBe([...waiting].filter((one) => one.key === key).length);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('starts a single request before others were given more than their turns and what came back to them', () => {
    fc.assert(
      fc.property(load, fc.integer({ min: 1, max: MAX_COST }), ({ weights, costs, places }, cost) => {
        const queue = new FairQueue<Item>(QUANTUM);
        const flood = (index: number) => {
          for (const one of costs) queue.push(item('', KEYS[index]!, one, { weight: weights[index]! }));
        };
        for (const index of [0, 1, 2]) for (let times = 0; times < 5; times++) flood(index);
        const running = queue.take(places);
        const single = item('single', 'D', cost);
        queue.push(single);
        for (const one of running) queue.settle(one, 1);
        let others = 0;
        for (;;) {
          const [one] = queue.take(1);
          if (one === single) break;
          others += one!.cost;
        }
        const rounds = Math.ceil(cost / QUANTUM) + 1;
        const most = [0, 1, 2].reduce(
          (sum, index) => sum + rounds * QUANTUM * weights[index]! + 2 * MAX_COST,
          0,
        );
        expect(others).toBeLessThanOrEqual(most + places * MAX_COST);
      }),
    );
  });

  it('starves nobody, however often other keys come with one request each', () => {
    const queue = new FairQueue<Item>(QUANTUM);
    for (let index = 0; index < 100; index++) queue.push(item('old', 'A', 100));
    const taken: string[] = [];
    for (let step = 0; step < 200; step++) {
      for (const key of ['B', 'C', 'D']) if (queue.sizeOf(key) === 0) queue.push(item(key, key, 100));
      taken.push(...queue.take(1).map(({ name }) => name));
    }
    for (const name of ['old', 'B', 'C', 'D']) {
      expect(taken.filter((one) => one === name).length).toBeGreaterThan(30);
    }
  });
});
