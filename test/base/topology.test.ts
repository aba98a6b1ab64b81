import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultThreads, formatCpuList, parseCpuList, readTopology } from '../../base/topology.js';
import { sockets, syntheticMachine } from '../support/synthetic-machine.js';

const allowed = (list: string) => ({ '/proc/self/status': `Name:\tnode\nCpus_allowed_list:\t${list}\n` });
const NODES = '/sys/devices/system/node';
const withoutNodes = { [`${NODES}/online`]: null, [`${NODES}/node0/cpulist`]: null };

describe('readTopology', () => {
  it('counts cores, not hyper-threads', () => {
    const read = syntheticMachine(sockets(1, 4, 2));
    expect(readTopology(read)).toEqual({
      cores: [0, 1, 2, 3].map((core) => ({ cpus: [core, core + 4], node: 0, performance: 0 })),
      quota: 8,
      nodes: 1,
    });
    expect(defaultThreads(read)).toBe(4);
  });

  it('tells the nodes of two sockets', () => {
    const topology = readTopology(syntheticMachine(sockets(2, 8, 2)))!;
    expect(topology.cores.map(({ node }) => node)).toEqual([...Array(8).fill(0), ...Array(8).fill(1)]);
    expect(topology.nodes).toBe(2);
  });

  it('leaves processors out that are offline, in whose core the sibling is alone', () => {
    const machine = sockets(1, 4, 2);
    const read = syntheticMachine(machine, {
      ...allowed('0-511'),
      '/sys/devices/system/cpu/online': '0-5\n',
      '/sys/devices/system/cpu/cpu2/topology/thread_siblings_list': '2\n',
      '/sys/devices/system/cpu/cpu3/topology/thread_siblings_list': '3\n',
    });
    expect(readTopology(read)!.cores.map(({ cpus }) => cpus)).toEqual([[0, 4], [1, 5], [2], [3]]);
  });

  it.each([
    ['three processors of a container, two of them of a core', { ...allowed('1-2,9') }, [[1, 9], [2]]],
    ['the set of a cgroup', { '/sys/fs/cgroup/cpuset.cpus.effective': '0,8,15\n' }, [[0, 8], [15]]],
    ['both', { ...allowed('8-15'), '/sys/fs/cgroup/cpuset.cpus.effective': '0-9\n' }, [[8], [9]]],
  ])('keeps to %s', (_, more, cores) => {
    const topology = readTopology(syntheticMachine(sockets(2, 4, 2), more))!;
    expect(topology.cores.map(({ cpus }) => cpus)).toEqual(cores);
    // The memory of the other socket is far however few processors are allowed.
    expect(topology.nodes).toBe(2);
    expect(defaultThreads(syntheticMachine(sockets(2, 4, 2), more))).toBe(cores.length);
  });

  it('takes sockets for nodes where the kernel tells none', () => {
    const machine = sockets(2, 2, 1);
    const read = syntheticMachine(machine, { ...withoutNodes, [`${NODES}/node1/cpulist`]: null });
    expect(readTopology(read)).toMatchObject({
      nodes: 2,
      cores: [{ node: 0 }, { node: 0 }, { node: 1 }, {}],
    });
  });

  it('takes a machine of ARM, which has no hyper-threads and may tell no socket', () => {
    const more = Object.fromEntries(
      [0, 1, 2, 3].map((cpu) => [`/sys/devices/system/cpu/cpu${cpu}/topology/physical_package_id`, '-1\n']),
    );
    const read = syntheticMachine(sockets(1, 4, 1), { ...withoutNodes, ...more });
    expect(readTopology(read)).toMatchObject({ nodes: 1, quota: 4 });
    expect(readTopology(read)!.cores).toHaveLength(4);
    expect(defaultThreads(read)).toBe(4);
  });

  it('reads the newer name of the list of siblings, and takes a processor without one for a core', () => {
    const machine = sockets(1, 2, 2);
    const topology = '/sys/devices/system/cpu/cpu';
    const none = Object.fromEntries(
      [0, 1, 2, 3].map((cpu) => [`${topology}${cpu}/topology/thread_siblings_list`, null]),
    );
    expect(readTopology(syntheticMachine(machine, none))!.cores).toHaveLength(4);
    const newer = Object.fromEntries(
      [0, 1, 2, 3].map((cpu) => [`${topology}${cpu}/topology/core_cpus_list`, `${cpu % 2},${(cpu % 2) + 2}`]),
    );
    expect(readTopology(syntheticMachine(machine, { ...none, ...newer }))!.cores).toHaveLength(2);
  });

  it('says nothing where the system tells nothing', () => {
    expect(readTopology(() => null)).toBeNull();
    expect(defaultThreads(() => null)).toBeGreaterThan(0);
  });
});

describe('defaultThreads', () => {
  it.each([
    ['200000 100000', 2],
    ['600000 100000', 4],
    ['50000 100000', 1],
    ['max 100000', 4],
  ])('is no more than the quota %s', (quota, expected) => {
    expect(defaultThreads(syntheticMachine(sockets(1, 4, 2), { '/sys/fs/cgroup/cpu.max': quota }))).toBe(
      expected,
    );
  });
});

it('lists of processors are read as they are written', () => {
  expect(parseCpuList('0-2,5,8-9')).toEqual([0, 1, 2, 5, 8, 9]);
  const cpus = fc.uniqueArray(fc.nat(300));
  fc.assert(
    fc.property(cpus, (list) => {
      expect(parseCpuList(formatCpuList(list))).toEqual(list.toSorted((a, b) => a - b));
    }),
  );
});
