import { afterAll, describe, expect, it } from 'vitest';
import { cachedHeads, sharedCaches, uniformPlan } from '../../../engine/executors/cache-layers.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { TinyNetworks } from '../../../tools/support/tiny-network.js';
import { executorOptions } from '../../support/native-options.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

describe('uniformPlan', () => {
  it('is the plan with what every layer keeps', () => {
    const { plan } = networks.make({ numKvHeads: 2, headDim: 16 });
    expect(uniformPlan(plan, 'native')).toEqual({
      ...plan,
      attention: { ...plan.attention, numKvHeads: 2, headDim: 16 },
    });
  });

  it('refuses layers that keep different heads, by their numbers', () => {
    const { plan } = networks.make({ numLayers: 3, ownHeads: [{}, {}, { numKvHeads: 1, headDim: 8 }] });
    expect(() => uniformPlan(plan, 'tensorflow')).toThrow(
      'The tensorflow executor keeps the same in all layers, but layer 0 of the plan keeps 2 heads of 16 numbers, and ' +
        'layer 2 1 head of 8 numbers; the native and the wasm executor run such plans.',
    );
  });

  it('has heads of no use where no layer keeps anything of a token', () => {
    const { plan } = networks.make({ scanned: 'alone' });
    const attention = { ...plan.attention, numKvHeads: 1, headDim: 1 };
    expect(uniformPlan(plan, 'native')).toEqual({ ...plan, attention });
  });

  it('refuses a plan with more or fewer caches than layers', () => {
    const { plan } = networks.make();
    expect(() => uniformPlan({ ...plan, caches: plan.caches.slice(1) }, 'native')).toThrow(
      'The plan has 1 caches, but 2 layers that keep something.',
    );
    expect(() => uniformPlan({ ...plan, caches: [] }, 'native')).toThrow('The plan has 0 caches');
  });
});

describe('sharedCaches', () => {
  it('refuses layers that read what others keep, by the executors that run them', () => {
    const { plan } = networks.make({ numLayers: 3, readingLayers: 1 });
    expect(sharedCaches(plan, 'tensorflow')).toMatch(
      /^The tensorflow executor .* read those of others; the native/,
    );
    expect(sharedCaches(networks.make().plan, 'tensorflow')).toBeNull();
  });
});

describe('cachedHeads', () => {
  it('refuses values that are not as wide as keys', () => {
    const { plan } = networks.make();
    const caches = plan.caches.map((shape) => ({ ...shape, valueDim: 24 }));
    expect(() => cachedHeads({ ...plan, caches }, 1, 'wasm')).toThrow(
      'The wasm executor keeps values as wide as keys, but layer 1 of the plan has keys of 16 and values of 24 numbers.',
    );
  });
});

describe('the native executor', () => {
  it('refuses values that are not as wide as keys, when it is made and when it is measured', () => {
    const made = networks.make();
    const caches = made.plan.caches.map((shape) => ({ ...shape, valueDim: 24 }));
    const tiny = { ...made, plan: { ...made.plan, caches } };
    const wrong = 'Layer 0 of the plan has keys of 16 and values of 24 numbers, but they must be as wide.';
    expect(() => new NativeExecutor(tiny, executorOptions({}))).toThrow(wrong);
    expect(() => NativeExecutor.measure(tiny, executorOptions({}))).toThrow(wrong);
  });
});
