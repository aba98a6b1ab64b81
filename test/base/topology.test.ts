import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { performanceCores } from '../../base/apple-cores.js';
import { cpuQuota } from '../../base/cpu-quota.js';
import { formatCpuList, parseCpuList } from '../../base/system-texts.js';
import { defaultThreads, fewerThreads, readTopology } from '../../base/topology.js';
import { sockets, syntheticMachine } from '../support/synthetic-machine.js';

const allowed = (list: string) => ({ '/proc/self/status': `Name:\tnode\nCpus_allowed_list:\t${list}\n` });
const NODES = '/sys/devices/system/node';
const withoutNodes = { [`${NODES}/online`]: null, [`${NODES}/node0/cpulist`]: null };

describe('readTopology', () => {
  it('counts cores, not hyper-threads', () => {
    const read = syntheticMachine(sockets(1, 4, 2));
    expect(readTopology(read)).toEqual({
      cores: [0, 1, 2, 3].map((core) => ({ cpus: [core, core + 4], node: 0, performance: 0, isFast: true })),
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

describe('fewerThreads', () => {
  it.each([
    ['as many as there are processors', sockets(1, 4, 1), {}, 4, null],
    ['hyper-threads', sockets(1, 4, 2), {}, 8, '8 processors are the threads of 4 cores'],
    [
      'a quota',
      sockets(1, 4, 2),
      { '/sys/fs/cgroup/cpu.max': '150000 100000\n' },
      8,
      'a CPU quota allows 1 of 8 processors',
    ],
    ['a mask', sockets(1, 4, 1), allowed('1-2'), 4, 'this process may use 2 of 4 processors'],
  ])('says why: %s', (_, machine, more, all, why) => {
    const read = syntheticMachine(machine, more);
    expect(fewerThreads(defaultThreads(read), read, all)).toBe(why);
    expect(fewerThreads(defaultThreads(read) + 1, read, all)).toBeNull();
  });

  it('says nothing where the system does not tell', () => {
    expect(fewerThreads(1, () => null, 8)).toBeNull();
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

/** The capacities of cores, as a kernel for ARM reports them. */
const capacities = (...values: number[]) =>
  Object.fromEntries(
    values.map((value, cpu) => [`/sys/devices/system/cpu/cpu${cpu}/cpu_capacity`, `${value}\n`]),
  );

describe('efficiency cores', () => {
  it.each([
    ['four little and four big', [430, 430, 430, 430, 1024, 1024, 1024, 1024], [4, 5, 6, 7]],
    ['a prime one, three big and four little', [250, 250, 250, 250, 871, 871, 871, 1024], [4, 5, 6, 7]],
    [
      'big ones of two kinds, which are more together',
      [750, 750, 750, 750, 900, 900, 900, 1024],
      [0, 1, 2, 3, 4, 5, 6, 7],
    ],
    ['cores of one kind', [1024, 1024, 1024, 1024], [0, 1, 2, 3]],
    ['one core', [1024], [0]],
  ])('of ARM are left out where the others do more without them: %s', (_, values, fast) => {
    const read = syntheticMachine(sockets(1, values.length, 1), capacities(...values));
    const found = readTopology(read)!.cores.flatMap(({ cpus, isFast }) => (isFast ? cpus : []));
    expect(found).toEqual(fast);
    expect(defaultThreads(read)).toBe(fast.length);
  });

  it('never make the number of threads by which most is done smaller than any other, whatever the capacities are', () => {
    const machine = fc.array(fc.integer({ min: 1, max: 1024 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(machine, (values) => {
        const fast = readTopology(
          syntheticMachine(sockets(1, values.length, 1), capacities(...values)),
        )!.cores.flatMap(({ cpus, isFast }) => (isFast ? cpus : []));
        const done = (count: number) => count * values.toSorted((a, b) => b - a)[count - 1]!;
        const most = Math.max(...values.map((_, i) => done(i + 1)));
        expect(fast.length * Math.min(...fast.map((cpu) => values[cpu]!))).toBe(most);
      }),
    );
  });

  it('of ARM count where this process may use no others, or one capacity is not told', () => {
    const machine = sockets(1, 8, 1);
    const little = capacities(430, 430, 430, 430, 1024, 1024, 1024, 1024);
    expect(defaultThreads(syntheticMachine(machine, { ...little, ...allowed('0-3') }))).toBe(4);
    const read = syntheticMachine(machine, little);
    expect(fewerThreads(defaultThreads(read), read, 8)).toMatch(/^\d of \d cores are performance cores$/);
    expect(defaultThreads(syntheticMachine(machine, { ...little, ...allowed('3-4') }))).toBe(1);
    const untold = { ...little, '/sys/devices/system/cpu/cpu0/cpu_capacity': null };
    expect(defaultThreads(syntheticMachine(machine, untold))).toBe(8);
  });

  it('of hybrid x86 are left out, and count where this process may use no others', () => {
    // Two performance cores with two threads each, and four efficiency cores.
    const cores = [[0, 1], [2, 3], [4], [5], [6], [7]].map((cpus) => ({ cpus, node: 0 }));
    const kinds = { '/sys/devices/cpu_core/cpus': '0-3\n', '/sys/devices/cpu_atom/cpus': '4-7\n' };
    const read = syntheticMachine(cores, kinds);
    expect(readTopology(read)!.cores.map(({ isFast }) => isFast)).toEqual([
      ...[true, true],
      ...[false, false, false, false],
    ]);
    expect(defaultThreads(read)).toBe(2);
    expect(defaultThreads(syntheticMachine(cores, { ...kinds, ...allowed('4-6') }))).toBe(3);
    expect(defaultThreads(syntheticMachine(cores, { ...kinds, ...allowed('3-6') }))).toBe(1);
    // A kernel reports only cpu_core where all cores are of one kind.
    expect(defaultThreads(syntheticMachine(cores, { '/sys/devices/cpu_core/cpus': '0-7\n' }))).toBe(6);
  });

  it('of Apple silicon are left out; an Intel Mac has cores of one kind', () => {
    const sysctl = (values: Record<string, string>) => (name: string) => {
      const value = values[name];
      if (value === undefined) throw new Error(`sysctl: unknown oid '${name}'`);
      return value;
    };
    const m3 = { 'hw.perflevel0.physicalcpu': '6\n', 'hw.physicalcpu': '12\n' };
    expect(performanceCores(sysctl(m3))).toBe(6);
    expect(performanceCores(sysctl({ 'hw.physicalcpu': '4\n' }))).toBe(4);
    expect(performanceCores(sysctl({}))).toBeNull();
    expect(
      defaultThreads(
        () => null,
        () => 1,
      ),
    ).toBe(1);
  });
});

describe('cpuQuota', () => {
  it.each([
    ['the root of a container', { '/sys/fs/cgroup/cpu.max': '300000 100000' }, 3],
    [
      'a unit of systemd',
      {
        '/proc/self/cgroup': '0::/system.slice/skein.service\n',
        '/sys/fs/cgroup/system.slice/cpu.max': 'max 100000\n',
        '/sys/fs/cgroup/system.slice/skein.service/cpu.max': '250000 100000\n',
      },
      2,
    ],
    [
      'a group around it that has less',
      {
        '/proc/self/cgroup': '0::/small/large\n',
        '/sys/fs/cgroup/small/cpu.max': '100000 100000\n',
        '/sys/fs/cgroup/small/large/cpu.max': '800000 100000\n',
      },
      1,
    ],
    ['a path of the host that leads nowhere here', { '/proc/self/cgroup': '0::/../../pod/x\n' }, 16],
    [
      'the first version of cgroups',
      {
        '/proc/self/cgroup': '4:cpu,cpuacct:/\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '500000\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      },
      5,
    ],
    [
      'a unit of systemd, by the first version',
      {
        '/proc/self/cgroup': '12:cpuset:/\n4:cpu,cpuacct:/system.slice/skein.service\n1:name=systemd:/x\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
        '/sys/fs/cgroup/cpu/system.slice/skein.service/cpu.cfs_quota_us': '300000\n',
        '/sys/fs/cgroup/cpu/system.slice/skein.service/cpu.cfs_period_us': '100000\n',
      },
      3,
    ],
  ])('reads that of %s', (_, files: Record<string, string>, expected) => {
    expect(cpuQuota((path) => files[path] ?? null, 16)).toBe(expected);
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
