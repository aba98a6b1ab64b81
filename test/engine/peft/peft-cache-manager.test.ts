import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AdapterMissingError } from '../../../callbacks/adapter-missing-error.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { FAKE_MODEL } from '../../../engine/executors/fake/fake-adapters.js';
import { pageSizes } from '../../../engine/peft/page-sizes.js';
import { type AdapterUse, PeftCacheManager } from '../../../engine/peft/peft-cache-manager.js';
import { type AdapterWeights, adapterOf } from '../../../models/adapters/adapter-weights.js';
import { MODULE_IDS } from '../../../models/adapters/module-ids.js';
import { fakeAdapter } from '../../support/lora-requests.js';
import { draws } from '../../support/scale.js';
import { SlowCache } from './slow-caches.js';

const SIZES = pageSizes(FAKE_MODEL, { optimalAdapterSize: 2, maxAdapterSize: 4 });
/** Adapters of 1, 2 and 3 pages, with versions of their content. */
const ADAPTERS = [2, 4, 5].map((rank) => [0, 1].map((version) => fakeAdapter(version, rank)));
const manager = (host: number, device: number, slots: number) =>
  new PeftCacheManager(SIZES, { host, device }, slots);

it('gives adapters of the optimal size one page', () => {
  const pages = ADAPTERS.map(([adapter]) => {
    const cache = manager(9, 9, 9);
    return cache.admit(1n, adapter!).pages;
  });
  expect(pages).toEqual([1, 2, 3]);
});

const step = fc.array(fc.nat(7), { minLength: 1, maxLength: 4 });
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('bring' as const), task: fc.nat(7), version: fc.nat(1) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('name' as const), task: fc.nat(7) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('step' as const), tasks: step }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('finish' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), task: fc.nat(7) }) },
);

/** Both caches compared with slow ones, and an executor's slots with what the manager asks for. */
class Machine {
  readonly cache: PeftCacheManager;
  readonly host: SlowCache;
  readonly device: SlowCache;
  readonly uses: AdapterUse[] = [];
  /** Tasks of the steps that run. */
  readonly steps: bigint[][] = [];
  /** Tasks that go with the last request that uses them. */
  readonly leaving = new Set<number>();
  readonly slots: (AdapterWeights | null)[];
  refused = 0;
  missing = 0;
  evicted = 0;
  left = 0;
  puts = 0;

  constructor(host: number, device: number, slots: number) {
    this.cache = manager(host, device, slots);
    this.host = new SlowCache(host);
    this.device = new SlowCache(device, slots);
    this.slots = new Array(slots).fill(null);
  }

  bring(task: number, version: number): void {
    const pages = (task % 3) + 1;
    const known = this.host.find(task);
    const weights = ADAPTERS[task % 3]![version]!;
    let isRefused = known !== undefined && known.version !== version && known.uses > 0;
    if (known === undefined || (known.version !== version && known.uses === 0)) {
      // On a copy, since a refusal changes nothing.
      const trial = new SlowCache(this.cache.stats().hostPages);
      trial.entries = this.host.entries.filter((entry) => entry !== known).map((entry) => ({ ...entry }));
      isRefused = trial.put(task, pages) === null;
    }
    if (isRefused) {
      this.refused += 1;
      expect(() => this.cache.admit(BigInt(task), weights)).toThrow(ParameterError);
      return;
    }
    if (known !== undefined && known.version === version) this.host.hold(task);
    else {
      if (known !== undefined) this.#forget(task);
      const gone = this.host.put(task, pages, version)!;
      this.evicted += gone.length;
      for (const id of gone) this.device.remove(id);
    }
    this.leaving.delete(task);
    this.uses.push(this.cache.admit(BigInt(task), weights));
    expect(this.uses.at(-1)).toMatchObject({ taskId: BigInt(task), pages });
  }

  #forget(task: number): void {
    this.host.remove(task);
    this.device.remove(task);
  }

  name(task: number): void {
    if (this.host.find(task) === undefined) {
      this.missing += 1;
      expect(() => this.cache.admit(BigInt(task), null)).toThrow(AdapterMissingError);
      return;
    }
    this.host.hold(task);
    this.leaving.delete(task);
    this.uses.push(this.cache.admit(BigInt(task), null));
  }

  /** No request will name the task again, as far as the host knows. */
  leave(task: number): void {
    this.cache.forget(BigInt(task));
    const known = this.host.find(task);
    if (known === undefined) return;
    if (known.uses > 0) this.leaving.add(task);
    else this.#forget(task);
    this.left += 1;
  }

  /** A request ends, unless its step runs. */
  end(which: number): void {
    const free = this.uses.filter(({ taskId }) => !this.steps.flat().includes(taskId));
    const use = free[which % Math.max(1, free.length)];
    if (use === undefined) return;
    this.uses.splice(this.uses.indexOf(use), 1);
    const task = Number(use.taskId);
    this.host.release(task);
    this.cache.release(use);
    if (this.leaving.has(task) && this.host.find(task)!.uses === 0) {
      this.leaving.delete(task);
      this.#forget(task);
    }
  }

  /** Begins a step of the tasks that some request uses, at most two steps at once. */
  step(tasks: readonly number[]): void {
    if (this.steps.length === 2) return;
    const asked = [...new Set(tasks)].filter((task) => (this.host.find(task)?.uses ?? 0) > 0);
    const resident = asked.filter((task) => this.device.find(task) !== undefined);
    for (const task of resident) this.device.hold(task);
    const denied = asked.filter(
      (task) => !resident.includes(task) && this.device.put(task, this.host.find(task)!.pages) === null,
    );
    const taskIds = asked.map(BigInt);
    const busy = this.steps.flat().map((taskId) => this.cache.slotOf(taskId));
    expect(this.cache.ensure(taskIds)).toEqual(denied.map(BigInt));
    const changes = this.cache.drainChanges();
    for (const { slot, weights } of changes) {
      if (weights !== null) expect(busy).not.toContain(slot);
      this.slots[slot] = weights;
      this.puts += weights === null ? 0 : 1;
    }
    this.steps.push(taskIds.filter((taskId) => !denied.includes(Number(taskId))));
    for (const taskId of this.steps.flat()) {
      const { version } = this.host.find(Number(taskId))!;
      const weights = ADAPTERS[Number(taskId) % 3]![version]!;
      expect(fingerprint(this.slots[this.cache.slotOf(taskId)])).toBe(fingerprint(weights));
    }
  }

  finish(): void {
    const ended = this.steps.shift() ?? [];
    for (const taskId of ended) this.device.release(Number(taskId));
    this.cache.endStep(ended);
  }

  check(): void {
    this.cache.checkIntegrity();
    const { usedHostPages, usedDevicePages } = this.cache.stats();
    expect(usedHostPages).toBe(this.host.used);
    expect(usedDevicePages).toBe(this.device.used);
    for (let task = 0; task < 8; task++) {
      expect(this.cache.pagesOf(BigInt(task))).toBe(this.host.find(task)?.pages ?? null);
      expect(this.cache.slotOf(BigInt(task)) >= 0).toBe(this.device.find(task) !== undefined);
    }
  }
}

function fingerprint(adapter: AdapterWeights | null | undefined): string {
  return String(adapter?.moduleLayers.map(({ a }) => [...a]));
}

it('agrees with a slow oracle in random histories, and the slots hold what steps read', () => {
  const sums = { refused: 0, missing: 0, evicted: 0, left: 0, puts: 0 };
  const sizes = fc.record({
    host: fc.integer({ min: 3, max: 10 }),
    device: fc.integer({ min: 3, max: 6 }),
    slots: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(
      sizes,
      fc.array(operation, { minLength: 80, maxLength: 150, size: 'max' }),
      ({ host, device, slots }, history) => {
        const machine = new Machine(host, device, slots);
        for (const one of history) {
          if (one.kind === 'bring') machine.bring(one.task, one.version);
          else if (one.kind === 'name') machine.name(one.task);
          else if (one.kind === 'end') machine.end(one.which);
          else if (one.kind === 'step') machine.step(one.tasks);
          else if (one.kind === 'leave') machine.leave(one.task);
          else machine.finish();
          machine.check();
        }
        for (const sum of ['refused', 'missing', 'evicted', 'left', 'puts'] as const)
          sums[sum] += machine[sum];
      },
    ),
    { numRuns: draws(50) },
  );
  for (const [what, count] of Object.entries(sums)) expect(count, what).toBeGreaterThan(draws(60));
});

describe('refusals', () => {
  it('of an adapter larger than a cache name it with the numbers', () => {
    expect(() => manager(2, 9, 1).admit(1n, ADAPTERS[2]![0]!)).toThrow(
      'lora_weights takes 3 pages; the host cache of adapters has 2 (peftCacheManagerConfig.hostCacheSize).',
    );
    expect(() => manager(9, 2, 1).admit(1n, ADAPTERS[2]![0]!)).toThrow(
      /3 pages; the device cache of adapters has 2 \(peftCacheManagerConfig\.deviceCachePercent\)\.$/,
    );
  });

  it('of other weights for a task in use keep the former ones', () => {
    const cache = manager(9, 9, 2);
    const use = cache.admit(5n, ADAPTERS[0]![0]!);
    expect(() => cache.admit(5n, ADAPTERS[0]![1]!)).toThrow(
      /lora_task_id is 5, and 1 requests in flight use/,
    );
    expect(cache.admit(5n, null)).toEqual(use);
    expect(cache.admit(5n, ADAPTERS[0]![0]!)).toEqual(use);
  });

  it('of a missing task have a code and the task', () => {
    expect.assertions(1);
    try {
      manager(1, 1, 1).admit(3n, null);
    } catch (error) {
      expect(error).toMatchObject({ code: 'SKEIN_ADAPTER_MISSING', taskId: 3n });
    }
  });
});

it('puts a slot again that the executor refused to change', () => {
  const cache = manager(9, 9, 2);
  cache.admit(5n, ADAPTERS[0]![0]!);
  cache.ensure([5n]);
  const [change, ...more] = cache.drainChanges();
  expect(more).toEqual([]);
  cache.noteFailed(change!.slot);
  expect(cache.drainChanges()).toEqual([]);
  cache.endStep([5n]);
  cache.ensure([5n]);
  expect(cache.drainChanges()).toEqual([change]);
  expect(cache.drainChanges()).toEqual([]);
});

it('keeps nothing of 1000 adapters that came and went but what has room', () => {
  const cache = manager(4, 3, 2);
  for (let task = 0n; task < 1000n; task++) {
    const layer = {
      layer: 0,
      module: MODULE_IDS.attn_q,
      rank: 1,
      a: new Float32Array(4),
      b: new Float32Array(4),
    };
    const use = cache.admit(task, adapterOf([{ ...layer, a: layer.a.fill(Number(task)) }], null));
    expect(cache.ensure([task])).toEqual([]);
    expect(cache.slotOf(task)).toBeLessThan(2);
    cache.drainChanges();
    cache.endStep([task]);
    cache.release(use);
  }
  expect(cache.stats()).toEqual({ hostPages: 4, usedHostPages: 4, devicePages: 3, usedDevicePages: 2 });
  expect([995n, 996n, 999n].map((task) => cache.pagesOf(task))).toEqual([null, 1, 1]);
});
