import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IterationStats } from '../../../../callbacks/gpt-manager-options.js';
import { LiveModels } from '../../../../src/serving/model-directory.js';
import type { StoredModel } from '../../../../src/serving/on-demand/model-store.js';
import { type OnDemandLimits, OnDemandModels } from '../../../../src/serving/on-demand/on-demand-models.js';
import type { EngineCounts } from '../../../../src/serving/running-model.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { ToldStatistics } from '../../support/served-models.js';
import { toyModel } from '../../support/toy-server.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const stored = (name: string): StoredModel => ({
  name,
  path: `/models/${name}`,
  format: 'gguf',
  quant: '',
  size: 1,
  modifiedMs: 0,
  digest: '',
  repository: null,
  isDefault: false,
});

interface Step {
  resolve: () => void;
  reject: (error: Error) => void;
  signal: AbortSignal;
}

/** A folder with models of 40 bytes each, whose loads end when the test says so. */
function made(limits: Partial<OnDemandLimits> = {}, names = ['a', 'b', 'c']) {
  const models = new LiveModels();
  const begun: string[] = [];
  const unloaded: string[] = [];
  const errors: Error[] = [];
  const steps = new Map<string, Step>();
  const active = new Map<string, number>();
  const load = (name: string) => (_: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      begun.push(name);
      signal.addEventListener('abort', () => reject(signal.reason));
      const end = () => {
        const statistics = new ToldStatistics<EngineCounts, IterationStats>(() => {
          return { running: active.get(name) ?? 0, waiting: 0, maxBlocks: 1, usedBlocks: 0 };
        });
        models.add(toyModel(new FakeEngine(() => []), { id: name, statistics }));
        resolve();
      };
      steps.set(name, { resolve: end, reject, signal });
    });
  const onDemand = new OnDemandModels({
    store: { find: async (name) => (names.includes(name) ? stored(name) : null) },
    models,
    loader: {
      measure: async ({ name }) => ({ fixedBytes: 40, mostCacheBytes: 0, load: load(name) }),
      unload: async (name) => {
        unloaded.push(name);
        models.remove(name);
      },
    },
    limits: { memoryBytes: 100, keepAliveMs: 1000, maxWaiting: 3, loadTimeoutMs: 5000, ...limits },
    onError: (error) => errors.push(error),
  });
  const leaving = () => new AbortController();
  const borrow = (name: string, keepAlive?: number, { signal } = leaving()) =>
    onDemand.borrow(name, { keepAliveMs: keepAlive, signal });
  /** Lets what is due without the passing of time happen. */
  const settle = () => vi.advanceTimersByTimeAsync(0);
  /** Loads a model at once, and gives it back. */
  const use = async (name: string, keepAlive?: number) => {
    const lease = borrow(name, keepAlive);
    await settle();
    steps.get(name)?.resolve();
    steps.delete(name);
    (await lease)!.release();
  };
  const names_ = () => models.list().map(({ id }) => id);
  return { models, onDemand, begun, unloaded, errors, steps, active, borrow, settle, use, loaded: names_ };
}

describe('a model that is asked for', () => {
  it('is loaded once for all who ask, and then found', async () => {
    const own = made();
    const asked = [own.borrow('a'), own.borrow('a')];
    await own.settle();
    expect(own.begun).toEqual(['a']);
    expect(own.loaded()).toEqual([]);
    own.steps.get('a')!.resolve();
    const leases = await Promise.all(asked);
    expect(leases.map((lease) => lease!.model.id)).toEqual(['a', 'a']);
    expect((await own.borrow('a'))!.model.id).toBe('a');
    expect(own.begun).toEqual(['a']);
  });

  it('is null where nobody has it, and one of the command line is lent as it is', async () => {
    const own = made();
    expect(await own.borrow('none')).toBe(null);
    own.models.add(toyModel(new FakeEngine(() => []), { id: 'given' }));
    const lease = (await own.borrow('given', 0))!;
    lease.release();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(own.loaded()).toEqual(['given']);
  });

  it('that cannot be loaded fails for all who wait, and is tried again for the next', async () => {
    const own = made();
    const asked = Promise.allSettled([own.borrow('a'), own.borrow('a')]);
    await own.settle();
    own.steps.get('a')!.reject(new Error('it is broken.'));
    for (const result of await asked) {
      expect(result).toMatchObject({
        reason: { fault: 'failed', message: "The model 'a' cannot be loaded: it is broken." },
      });
    }
    await own.use('a');
    expect(own.begun).toEqual(['a', 'a']);
  });

  it('is given up where all have left, and goes on where one waits', async () => {
    const own = made();
    const [first, second] = [new AbortController(), new AbortController()];
    const asked = Promise.allSettled([own.borrow('a', 1, first), own.borrow('a', 1, second)]);
    await own.settle();
    const { signal } = own.steps.get('a')!;
    first.abort(new Error('left'));
    await own.settle();
    expect(signal.aborted).toBe(false);
    second.abort(new Error('left too'));
    const results = await asked;
    expect(results.map((result) => (result as { reason: Error }).reason.message)).toEqual([
      'left',
      'left too',
    ]);
    expect(signal.aborted).toBe(true);
    // A request that comes then starts over.
    await own.use('a');
    expect(own.begun).toEqual(['a', 'a']);
    expect(own.loaded()).toEqual(['a']);
  });

  it('is waited for by a bounded number, for a bounded time', async () => {
    const own = made();
    const asked = Promise.allSettled([own.borrow('a'), own.borrow('a'), own.borrow('b')]);
    await own.settle();
    await expect(own.borrow('c')).rejects.toMatchObject({
      fault: 'tooMany',
      message: '3 requests wait for models; at most 3 may.',
    });
    await vi.advanceTimersByTimeAsync(5000);
    for (const result of await asked) {
      expect(result).toMatchObject({
        reason: { fault: 'slow', message: expect.stringMatching(/within 5 s/) },
      });
    }
    expect(own.steps.get('a')!.signal.aborted).toBe(true);
    await own.use('b');
    expect(own.loaded()).toEqual(['b']);
  });

  it('keeps no lease of one who left as it was loaded', async () => {
    const own = made();
    const leaving = new AbortController();
    const asked = Promise.allSettled([own.borrow('a', undefined, leaving)]);
    await own.settle();
    own.steps.get('a')!.resolve();
    leaving.abort(new Error('left'));
    await asked;
    await vi.advanceTimersByTimeAsync(2000);
    expect(own.loaded()).toEqual([]);
  });
});

describe('an idle model', () => {
  it('is unloaded when its time is over, which each use begins anew', async () => {
    const own = made();
    await own.use('a');
    await vi.advanceTimersByTimeAsync(900);
    await own.use('a');
    await vi.advanceTimersByTimeAsync(900);
    expect(own.loaded()).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(200);
    expect(own.loaded()).toEqual([]);
    expect(own.unloaded).toEqual(['a']);
  });

  it('stays as long as the last request says: for ever, or not at all', async () => {
    const own = made();
    await own.use('a', Number.POSITIVE_INFINITY);
    await vi.advanceTimersByTimeAsync(1e9);
    expect(own.onDemand.expiresAt('a')).toBe(null);
    expect(own.loaded()).toEqual(['a']);
    await own.use('a', 0);
    await own.settle();
    expect(own.loaded()).toEqual([]);
  });

  it('stays while it is lent, and while its engine has anything to do', async () => {
    const own = made();
    await own.use('a');
    const lease = (await own.borrow('a', 0))!;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(own.loaded()).toEqual(['a']);
    own.active.set('a', 1);
    lease.release();
    lease.release();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(own.loaded()).toEqual(['a']);
    own.active.set('a', 0);
    await vi.advanceTimersByTimeAsync(200);
    expect(own.loaded()).toEqual([]);
  });

  it('is idle from the last step of its engine on', async () => {
    const own = made();
    await own.use('a');
    const model = own.models.find('a')!;
    await vi.advanceTimersByTimeAsync(900);
    (model.statistics as unknown as ToldStatistics<never, object>).tell({});
    await vi.advanceTimersByTimeAsync(900);
    expect(own.loaded()).toEqual(['a']);
    expect(own.onDemand.expiresAt('a')! - Date.now()).toBe(100);
    await vi.advanceTimersByTimeAsync(200);
    expect(own.loaded()).toEqual([]);
  });

  it('goes at once where it is let go, and where somebody unloads it elsewhere it is forgotten', async () => {
    const own = made();
    await own.use('a');
    await own.use('b');
    own.onDemand.expire('a');
    await own.settle();
    expect(own.loaded()).toEqual(['b']);
    own.models.remove('b');
    await vi.advanceTimersByTimeAsync(5000);
    expect(own.unloaded).toEqual(['a']);
    await own.use('b');
    expect(own.loaded()).toEqual(['b']);
  });

  it('whose engine has failed for good makes way for a new one', async () => {
    const own = made();
    await own.use('a');
    own.models.find('a')!.state.fail(new Error('it died'));
    await own.settle();
    expect(own.unloaded).toEqual(['a']);
    await own.use('a');
    expect(own.begun).toEqual(['a', 'a']);
  });
});

describe('the bound of memory', () => {
  it('unloads the model used least recently for one that needs its room', async () => {
    const own = made({ keepAliveMs: 1e6 });
    await own.use('a');
    await vi.advanceTimersByTimeAsync(10);
    await own.use('b');
    await vi.advanceTimersByTimeAsync(10);
    await own.use('a');
    await own.use('c');
    expect(own.unloaded).toEqual(['b']);
    expect(own.loaded()).toEqual(['a', 'c']);
  });

  it('makes one wait for those in use, until they are idle', async () => {
    const own = made({ keepAliveMs: 1e6 });
    await own.use('a');
    await own.use('b');
    const held = [(await own.borrow('a'))!, (await own.borrow('b'))!];
    const asked = own.borrow('c');
    await vi.advanceTimersByTimeAsync(3000);
    expect(own.begun).toEqual(['a', 'b']);
    held[1]!.release();
    await vi.advanceTimersByTimeAsync(200);
    expect(own.unloaded).toEqual(['b']);
    own.steps.get('c')!.resolve();
    expect((await asked)!.model.id).toBe('c');
  });

  it('refuses a model that alone is larger', async () => {
    const own = made({ memoryBytes: 39 });
    await expect(own.borrow('a')).rejects.toMatchObject({
      fault: 'tooLarge',
      message: expect.stringMatching(/takes 40 bytes.*39 together \(--model-memory-bytes\)/),
    });
    expect(own.begun).toEqual([]);
  });
});

it('is over when the server ends: nothing is loaded or unloaded any more', async () => {
  const own = made();
  await own.use('a');
  const asked = Promise.allSettled([own.borrow('b')]);
  await own.settle();
  own.onDemand.close();
  expect((await asked)[0]).toMatchObject({ reason: { message: 'The server is shutting down.' } });
  await vi.advanceTimersByTimeAsync(5000);
  expect(own.unloaded).toEqual([]);
  expect(own.errors).toEqual([]);
});
