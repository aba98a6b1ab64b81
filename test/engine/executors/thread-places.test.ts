import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTopology, type Topology } from '../../../base/topology.js';
import { choosePlaces, placeThreads } from '../../../engine/executors/thread-places.js';
import { sockets, syntheticMachine } from '../../support/synthetic-machine.js';

const topologyOf = (...machine: Parameters<typeof sockets>): Topology =>
  readTopology(syntheticMachine(sockets(...machine)))!;
const ALONE = { index: 0, count: 1 };

/** Places of all executors of a machine; the calling thread's, which are all of its node, without those of the others. */
function allOf(topology: Topology, threads: number, count: number): number[][][] {
  return Array.from({ length: count }, (_, index) => placeThreads(topology, threads, { index, count })!.cpus);
}

describe('placeThreads', () => {
  it('gives each rank the cores of one socket', () => {
    const [first, second] = allOf(topologyOf(2, 4, 2), 4, 2);
    expect(first).toEqual([
      [0, 8, 1, 9, 2, 10, 3, 11],
      [1, 9],
      [2, 10],
      [3, 11],
    ]);
    expect(second!.slice(1)).toEqual([
      [5, 13],
      [6, 14],
      [7, 15],
    ]);
    expect(placeThreads(topologyOf(2, 4, 2), 4, ALONE)!.hasFarMemory).toBe(true);
    expect(placeThreads(topologyOf(1, 4, 2), 4, ALONE)!.hasFarMemory).toBe(false);
  });

  it('spreads ranks over the sockets also where several fit on one', () => {
    expect(allOf(topologyOf(2, 4, 1), 2, 4).map((cpus) => cpus[0])).toEqual([
      [0, 1],
      [4, 5],
      [2, 3],
      [6, 7],
    ]);
  });

  it('goes on to the next node where one does not suffice, in the order of the nodes', () => {
    expect(placeThreads(topologyOf(2, 4, 1), 6, ALONE)!.cpus).toEqual([
      [0, 1, 2, 3],
      [1],
      [2],
      [3],
      [4],
      [5],
    ]);
  });

  it('takes efficiency cores last, whatever their numbers are', () => {
    const capacities = [430, 430, 1024, 1024].map((value, cpu) => [
      `/sys/devices/system/cpu/cpu${cpu}/cpu_capacity`,
      `${value}\n`,
    ]);
    const topology = readTopology(syntheticMachine(sockets(1, 4, 1), Object.fromEntries(capacities)))!;
    expect(placeThreads(topology, 2, ALONE)!.cpus).toEqual([[2, 3], [3]]);
    expect(placeThreads(topology, 3, ALONE)!.cpus).toEqual([[2, 3, 0], [3], [0]]);
    expect(allOf(topology, 1, 4)).toEqual([[[2]], [[3]], [[0]], [[1]]]);
  });

  it('gives one executor hyper-threads where it has more threads than there are cores', () => {
    expect(placeThreads(topologyOf(1, 2, 2), 3, ALONE)!.cpus).toEqual([[0, 1, 2], [1], [2]]);
    expect(placeThreads(topologyOf(1, 2, 2), 5, ALONE)).toBeNull();
    expect(placeThreads(topologyOf(1, 2, 2), 2, { index: 1, count: 2 })).toBeNull();
  });

  it('gives no core to two threads, and no rank two nodes where each could have one', () => {
    const shape = fc.tuple(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 2 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 6 }),
    );
    fc.assert(
      fc.property(shape, ([numSockets, cores, smt, threads, count]) => {
        const topology = topologyOf(numSockets, cores, smt);
        const places = Array.from({ length: count }, (_, index) =>
          placeThreads(topology, threads, { index, count }),
        );
        if (count * threads > topology.cores.length) {
          if (count > 1) expect(places.every((one) => one === null)).toBe(true);
          return;
        }
        const coreOf = (cpu: number) => cpu % topology.cores.length;
        const nodeOf = (cpu: number) => topology.cores[coreOf(cpu)]!.node;
        const taken = places.flatMap((one) => {
          const helpers = one!.cpus.slice(1).map(([cpu]) => coreOf(cpu!));
          const [own] = one!.cpus[0]!.map(coreOf).filter((core) => !helpers.includes(core));
          return [own!, ...helpers];
        });
        expect(new Set(taken).size).toBe(count * threads);
        if (Math.floor(cores / threads) * numSockets < count) return;
        for (const one of places) expect(new Set(one!.cpus.flat().map(nodeOf)).size).toBe(1);
      }),
    );
  });
});

describe('choosePlaces', () => {
  const two = () => topologyOf(2, 4, 2);
  const one = () => topologyOf(1, 4, 2);
  const rank = { index: 1, count: 2 };

  it('places ranks that share a machine of several nodes, and nothing else by itself', () => {
    expect(choosePlaces('auto', 4, rank, two)).not.toBeNull();
    expect(choosePlaces('auto', 2, rank, one)).toBeNull();
    expect(choosePlaces('auto', 4, undefined, two)).toBeNull();
    expect(choosePlaces('auto', 5, rank, two)).toBeNull();
    expect(choosePlaces('auto', 4, rank, () => null)).toBeNull();
    expect(choosePlaces('off', 4, rank, two)).toBeNull();
  });

  it('places always where it is on, or says why not', () => {
    expect(choosePlaces('on', 4, undefined, one)!.cpus).toHaveLength(4);
    expect(() => choosePlaces('on', 5, rank, two)).toThrow(
      'pinThreads is on, but this process may use 8 cores, too few for 2 x 5 threads; lower threads or leave it out.',
    );
    expect(() => choosePlaces('on', 1, undefined, () => null)).toThrow(
      'pinThreads is on, but this system does not tell its processors; leave it out.',
    );
  });
});
