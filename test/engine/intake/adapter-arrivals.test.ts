import { describe, expect, it } from 'vitest';
import type { InferenceRequest } from '../../../callbacks/types.js';
import { FAKE_MODEL } from '../../../engine/executors/fake/fake-adapters.js';
import { AdapterArrivals } from '../../../engine/intake/adapter-arrivals.js';
import { fingerprintOf } from '../../../engine/peft/adapter-fingerprint.js';
import { LoopHarness, makeRequest, u64 } from '../../../tools/support/loop-harness.js';
import { bringing, fakeAdapter, naming } from '../../support/lora-requests.js';

const BASE = { model: FAKE_MODEL, maxRank: 8, maxBytes: 1e9 };
const plain = (id: bigint) => makeRequest(id, [5], 3);
const named = (id: bigint, task: bigint) => makeRequest(id, [5], 3, naming(task));
const brought = (id: bigint, task: bigint, seed = Number(id)) =>
  makeRequest(id, [5], 3, bringing(task, fakeAdapter(seed)));
const ids = (requests: readonly InferenceRequest[]) => requests.map(({ requestId }) => requestId);

/** Arrivals while others generate, that read a module-layer at once. */
function slow(): AdapterArrivals {
  const arrivals = new AdapterArrivals(BASE, 1);
  arrivals.isBusy = true;
  return arrivals;
}

describe('new adapters', () => {
  it('come in over many iterations, one after the other, and hold only requests of their tasks', () => {
    const arrivals = slow();
    const waiting = [brought(1n, 7n), plain(2n), named(3n, 7n), brought(4n, 8n), named(5n, 9n)];
    const orders: bigint[][] = [];
    const taken = new Set<InferenceRequest>();
    let turns = 0;
    for (; taken.size < waiting.length; turns++) {
      const ready = arrivals.ready(waiting.filter((request) => !taken.has(request)));
      if (ready.length > 0) orders.push(ids(ready));
      for (const request of ready) taken.add(request);
    }
    expect(orders).toEqual([[2n, 5n], [1n, 3n], [4n]]);
    const parts = fakeAdapter(1).moduleLayers.length;
    // Each part is read, and its digest made.
    expect(turns).toBeGreaterThanOrEqual(2 * 2 * parts);
    const first = arrivals.claim(waiting[0]!)!;
    expect(first.taskId).toBe(7n);
    expect(first.fingerprint).toBe(fingerprintOf(fakeAdapter(1)));
    expect(first.weights!.moduleLayers).toEqual(fakeAdapter(1).moduleLayers);
    expect(arrivals.claim(plain(2n))).toBeNull();
  });

  it('come in at once where nobody generates, one an iteration', () => {
    const arrivals = new AdapterArrivals(BASE, 1);
    const waiting = [brought(1n, 7n), brought(2n, 8n)];
    expect(ids(arrivals.ready(waiting))).toEqual([1n]);
    expect(ids(arrivals.ready(waiting.slice(1)))).toEqual([2n]);
  });

  it('that are wrong are taken, and refused by the tensor that is', () => {
    const arrivals = new AdapterArrivals(BASE);
    const tensors = bringing(7n, fakeAdapter(1));
    (tensors.lora_weights!.data as Float32Array)[3] = Number.NaN;
    const wrong = makeRequest(1n, [5], 3, tensors);
    expect(ids(arrivals.ready([wrong]))).toEqual([1n]);
    expect(() => arrivals.claim(wrong)).toThrow(/lora_weights row 0: column 3 should be a finite number/);
  });

  it('whose tensors have other types are left to the check of the request', () => {
    const arrivals = slow();
    const { lora_weights: weights, lora_config: config } = bringing(7n, fakeAdapter(1));
    const others = [
      {
        lora_task_id: u64(7n),
        lora_weights: { ...weights!, data: new Int32Array(weights!.data.length) },
        lora_config: config!,
      },
      { lora_weights: weights!, lora_config: config! },
      { lora_task_id: u64(7n), lora_weights: { data: weights!.data } as never, lora_config: config! },
    ].map((inputs, i) => makeRequest(BigInt(i), [5], 3, inputs));
    expect(arrivals.ready(others)).toEqual(others);
    for (const request of others) expect(arrivals.claim(request)).toBeNull();
  });
});

describe('adapters that the host cache has', () => {
  it.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)(
    'are loaded one a step with %s, and a neighbour has a token in each',
    (schedulerPolicy) => {
      const tasks = [1n, 2n, 3n, 4n];
      const harness = new LoopHarness({
        schedulerPolicy,
        adapters: { slots: 4, hostPages: 64, devicePages: 64 },
      });
      for (const task of tasks)
        harness.adapters!.release(harness.adapters!.admit(task, fakeAdapter(Number(task))));
      harness.waiting.push(makeRequest(1n, [5], 20), ...tasks.map((task) => named(10n + task, task)));
      const puts: number[] = [];
      const tokens: number[] = [];
      for (let i = 0; i < tasks.length; i++) {
        harness.loop.iterate();
        puts.push(harness.executor.adapters!.numPuts);
        tokens.push(harness.stats.at(-1)!.generatedTokens);
      }
      expect(puts).toEqual([1, 2, 3, 4]);
      for (const count of tokens) expect(count).toBeGreaterThan(0);
      harness.run();
      for (const task of tasks) expect(harness.resultOf(10n + task).error).toBe('');
    },
  );
});
