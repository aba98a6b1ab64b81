import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WorkerLoads } from '../../../cluster/routing/worker-loads.js';
import { draws } from '../../support/scale.js';

it('knows what each worker has to do, and walks past rows of workers of which each has too much', () => {
  const step = fc.record({
    worker: fc.nat(20),
    requests: fc.nat(5),
    pendingBlocks: fc.nat(9),
    isThere: fc.boolean(),
  });
  let passed = 0;
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.tuple(fc.nat(21), fc.nat(21)),
      fc.nat(12),
      (steps, ends, most) => {
        const loads = new WorkerLoads();
        const there = new Map<number, { requests: number; pendingBlocks: number }>();
        for (const { worker, requests, pendingBlocks, isThere } of steps) {
          if (!there.has(worker)) loads.add(worker);
          else if (!isThere) loads.remove(worker);
          if (there.has(worker) && !isThere) {
            there.delete(worker);
            continue;
          }
          const before = there.get(worker) ?? { requests: 0, pendingBlocks: 0 };
          loads.change(worker, {
            requests: requests - before.requests,
            pendingBlocks: pendingBlocks - before.pendingBlocks,
          });
          there.set(worker, { requests, pendingBlocks });
        }
        for (const [worker, { requests, pendingBlocks }] of there) {
          expect([loads.requestsAt(worker), loads.pendingBlocksAt(worker)]).toEqual([
            requests,
            pendingBlocks,
          ]);
        }
        const [from, to] = ends.sort((a, b) => a - b);
        const walked: number[] = [];
        let asked = 0;
        const mayPass = (first: number, requests: number, pendingBlocks: number) => {
          asked += 1;
          expect(first).toBeGreaterThanOrEqual(from);
          return requests + pendingBlocks > most;
        };
        loads.walk(from, to, mayPass, (worker) => walked.push(worker));
        const wanted = [...there].flatMap(([worker, { requests, pendingBlocks }]) =>
          worker >= from && worker < to && requests + pendingBlocks <= most ? [worker] : [],
        );
        expect(walked).toEqual(wanted.sort((a, b) => a - b));
        if (asked === 1 && to - from > 1) passed += 1;
      },
    ),
    { seed: 26, numRuns: draws(100) },
  );
  expect(passed).toBeGreaterThan(5);
});

it('visits workers in the order of their costs, equal ones in turn, until none of the rest is of interest', () => {
  const worker = fc.record({ requests: fc.nat(3), pendingBlocks: fc.nat(3), isOpen: fc.boolean() });
  let numCut = 0;
  fc.assert(
    fc.property(
      ...[fc.array(worker, { minLength: 1, maxLength: 40 }), fc.nat(39), fc.nat(12), fc.nat(20)],
      (workers, turn, enough, most) => {
        const from = turn % workers.length;
        const loads = new WorkerLoads();
        for (const [index, { requests, pendingBlocks, isOpen }] of workers.entries()) {
          loads.add(index);
          loads.change(index, { requests, pendingBlocks });
          loads.setOpen(index, isOpen);
        }
        const costOf = (requests: number, pendingBlocks: number) => 2 * requests + pendingBlocks;
        const wanted = workers
          .map((one, index) => ({ ...one, index, cost: costOf(one.requests, one.pendingBlocks) }))
          .filter(({ isOpen, cost }) => isOpen && cost < enough)
          .map((one) => ({ ...one, place: (one.index - from + workers.length) % workers.length }))
          .sort((a, b) => a.cost - b.cost || a.place - b.place)
          .map(({ index }) => index);
        const visited: number[] = [];
        const visit = (index: number) => visited.push(index);
        const mayStop = (_: number, cost: number) => cost >= enough;
        const hasSeenAll = loads.leastFirst(from, { costOf, mayStop, visit, most });
        expect(visited).toEqual(wanted.slice(0, most));
        expect(hasSeenAll).toBe(wanted.length <= most);
        if (!hasSeenAll) numCut += 1;
      },
    ),
    { seed: 26, numRuns: draws(100) },
  );
  expect(numCut).toBeGreaterThan(5);
});

it('looks at a few of many workers', () => {
  const loads = new WorkerLoads();
  for (let worker = 0; worker < 1000; worker += 1) {
    loads.add(worker);
    loads.change(worker, { requests: worker === 700 ? 1 : 2, pendingBlocks: 0 });
  }
  let asked = 0;
  const walked: number[] = [];
  const mayPass = (_: number, requests: number) => {
    asked += 1;
    return requests > 1;
  };
  loads.walk(0, 1000, mayPass, (worker) => walked.push(worker));
  expect(walked).toEqual([700]);
  expect(asked).toBeLessThan(30);
});
