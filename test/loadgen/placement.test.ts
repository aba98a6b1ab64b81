import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { readTopology, type Topology } from '../../base/topology.js';
import { canPin, launcherOf, type PlacementRequest, planPlacement } from '../../loadgen/placement.js';
import { type SyntheticCore, syntheticMachine } from '../support/synthetic-machine.js';

/** Two nodes of four cores with two threads each; node 1 has the fastest core. */
const BIG: SyntheticCore[] = Array.from({ length: 8 }, (_, i) => ({
  cpus: [i, i + 8],
  node: i < 4 ? 0 : 1,
  performance: i === 6 ? 5000 : 4000 - i,
}));

const topologyOf = (cores: SyntheticCore[], more = {}) => readTopology(syntheticMachine(cores, more))!;

const plan = (topology: Topology | null, more: Partial<PlacementRequest> = {}) =>
  planPlacement({
    topology,
    workers: null,
    isOn: true,
    serverIsHere: false,
    canPin: true,
    ownsProcess: true,
    most: 100,
    ...more,
  });

describe('the topology', () => {
  it('16: is what affinity, cpuset and quota of the cgroup leave', () => {
    const whole = topologyOf(BIG);
    expect(whole.cores).toHaveLength(8);
    expect(whole.cores[0]).toEqual({ cpus: [0, 8], node: 0, performance: 4000, isFast: true });
    const narrow = topologyOf(BIG, {
      '/sys/fs/cgroup/cpuset.cpus.effective': '0-2,8-10\n',
      '/sys/fs/cgroup/cpu.max': '250000 100000\n',
    });
    expect(narrow.cores.map(({ cpus }) => cpus)).toEqual([
      [0, 8],
      [1, 9],
      [2, 10],
    ]);
    expect(narrow.quota).toBe(2);
  });
});

describe('the placement', () => {
  it('leaves a program that coordinates where it is, and a core to it', () => {
    const { coordinator, workers, message } = plan(topologyOf(BIG), { workers: 5, ownsProcess: false });
    const own = plan(topologyOf(BIG), { workers: 5 });
    expect(coordinator).toBeNull();
    expect(workers).toEqual(own.workers);
    expect(message).toMatch(
      /^Placed: workers on 4,12 \| .*; the program that coordinates them is where it was\.$/,
    );
  });

  it('17, 18: puts the coordinator on the fastest core of its node, workers on the rest of it, then on the next', () => {
    const { coordinator, workers, message } = plan(topologyOf(BIG), { workers: 5 });
    expect(coordinator).toBe('6,14');
    expect(workers).toEqual(['4,12', '5,13', '7,15', '0,8', '1,9']);
    expect(message).toMatch(/^Placed: the coordinator on processors 6,14, workers on 4,12 \| /);
  });

  it('19: gives every process whole cores, and no core to two', () => {
    const { coordinator, workers } = plan(topologyOf(BIG), { workers: 7 });
    const all = [coordinator!, ...(workers as string[])];
    expect(all.flatMap((list) => list.split(',')).toSorted()).toEqual(
      Array.from({ length: 16 }, (_, i) => `${i}`).toSorted(),
    );
    expect(all.every((list) => list.split(',').length === 2)).toBe(true);
  });

  it('20: is on by itself, can be turned off, and says so where the machine is too small', () => {
    expect(plan(topologyOf(BIG)).workers).toHaveLength(7);
    const off = plan(topologyOf(BIG), { isOn: false });
    expect([off.coordinator, off.workers[0], off.message]).toEqual([
      null,
      null,
      'Not placed: it is turned off.',
    ]);
    const small = plan(topologyOf(BIG.slice(0, 2)), { serverIsHere: true });
    expect(small.workers).toEqual([null]);
    expect(small.message).toBe(
      'Not placed: the machine is too small, with 2 cores; 1 worker and the coordinator need 4, half of them for the server that is on it too.',
    );
    expect(plan(topologyOf(BIG), { workers: 9 }).message).toMatch(
      /too small, with 8 cores; 9 workers .* need 10\.$/,
    );
    const quota = topologyOf(BIG, { '/sys/fs/cgroup/cpu.max': '100000 100000' });
    expect(plan(quota).message).toContain('with 8 cores and a quota of 1;');
    expect(plan(topologyOf(BIG), { canPin: false }).message).toContain('taskset');
    expect(plan(null).workers).toEqual([null]);
  });

  it('leaves half of the cores to a server on this machine, and has no more workers than slots', () => {
    expect(plan(topologyOf(BIG), { serverIsHere: true }).workers).toEqual(['4,12', '5,13', '7,15']);
    expect(plan(topologyOf(BIG), { most: 2 }).workers).toHaveLength(2);
  });

  it.runIf(canPin())('starts processes where they belong', () => {
    const [command, ...args] = launcherOf('0');
    const list = execFileSync(command!, [...args, 'grep', 'Cpus_allowed_list', '/proc/self/status'], {
      encoding: 'utf8',
    });
    expect(list.trim()).toMatch(/\t0$/);
    expect(launcherOf(null)).toEqual([]);
  });

  it.runIf(canPin())(
    '19: puts all threads of a worker process, and of the coordinator until its run is over',
    () => {
      const module = (path: string) => JSON.stringify(new URL(`../../dist/loadgen/${path}`, import.meta.url));
      const script = `
      import { readdirSync, readFileSync } from 'node:fs';
      import { launcherOf, pinThisProcess } from ${module('placement.js')};
      import { WorkerProcess } from ${module('worker/worker-process.js')};
      const processorsOf = (pid) => [...new Set(readdirSync('/proc/' + pid + '/task').map((thread) =>
        /Cpus_allowed_list:\\s*(\\S+)/.exec(readFileSync('/proc/' + pid + '/task/' + thread + '/status', 'utf8'))[1]))];
      const before = processorsOf(process.pid);
      const first = /^\\d+/.exec(before[0])[0];
      const config = { worker: 0, origin: 'http://127.0.0.1:1', headers: {}, tls: {}, connections: 0, maxInFlight: 1,
        keepAlive: true, timeoutMs: 1000, stallMs: 1000, retries: 0, busyWait: false,
        backend: { name: 'raw', model: '', stream: false, ignoreEos: false, fields: {} } };
      const worker = new WorkerProcess(config, launcherOf(first));
      await new Promise((resolve) => { worker.onFrame = resolve; });
      const ofWorker = processorsOf(worker.pid);
      await worker.close();
      const unpin = pinThisProcess(first);
      const during = processorsOf(process.pid);
      unpin();
      console.log(JSON.stringify({ before, first, ofWorker, during, after: processorsOf(process.pid) }));`;
      const text = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        encoding: 'utf8',
      });
      const { before, first, ofWorker, during, after } = JSON.parse(text) as Record<
        string,
        string | string[]
      >;
      expect([ofWorker, during]).toEqual([[first], [first]]);
      expect(after).toEqual(before);
    },
  );
});
