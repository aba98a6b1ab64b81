import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InstanceState } from '../../../../host/batch/batch-instance.js';
import { MAX_ROWS, modelsEventOf, sizesOf } from '../../../../src/server/feeds/models-event-of.js';
import type { ModelActivity } from '../../../../src/serving/infer-model.js';
import { InferenceCounters } from '../../../../src/serving/inference-counters.js';
import type { IndexRow } from '../../../../src/serving/model-repository.js';
import { ModelState } from '../../../../src/serving/model-state.js';
import { engineActivity } from '../../../../src/serving/texts/engine-activity.js';
import { ToldStatistics } from '../../support/served-models.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';

const NOW = 1_800_000_000_000;

/** A model that does what the test says. */
class ToldModel extends FakeModel {
  readonly counters = new InferenceCounters();
  now: Partial<ModelActivity> = {};
  constructor(name: string, version = '1') {
    super(fakeConfig({ name, type: 'TYPE_FP32', dims: [1], batch: 8 }), undefined, { version });
  }
  override statistics() {
    return this.counters.read();
  }
  override failures() {
    return this.counters.failures();
  }
  override activity(): ModelActivity {
    return { ...super.activity(), ...this.now };
  }
}

const ready = ({ config: { name }, version }: ToldModel): IndexRow => ({ name, version, state: 'READY' });
const times = (ms: number) => ({ inputNs: 0, inferNs: 1e6 * ms, outputNs: 0 });

/** The batches of a model that ran these sizes. */
function batchesOf(sizes: readonly number[]) {
  const counters = new InferenceCounters();
  for (const size of sizes) counters.noteExecution(size, times(1));
  return counters.read().batch_stats;
}

describe('the event of all models', () => {
  it('names the first of the adapters, and counts all', () => {
    const [few, many] = [new ToldModel('few'), new ToldModel('many')];
    few.now = { adapters: { names: ['sql'], changes: 3 } };
    const names = Array.from({ length: 1000 }, (_, i) => `a${i}`);
    many.now = { adapters: { names, changes: 1000 } };
    const models = [few, many];
    const source = { rows: () => models.map(ready), loaded: () => models };
    expect(modelsEventOf(source, NOW).rows.map(({ work }) => work!.adapters)).toEqual([
      { count: 1, names: ['sql'], changes: 3 },
      { count: 1000, names: names.slice(0, 20), changes: 1000 },
    ]);
  });

  it('has what a model does now and has done, and what is known of one that does not answer', () => {
    const model = new ToldModel('squares', '3');
    const instances: InstanceState[] = ['busy', 'busy', 'idle', 'starting', 'dead'];
    model.now = { waiting: 4, running: 6, instances, restarts: 2 };
    for (const rows of [1, 8, 8]) model.counters.noteExecution(rows, times(3));
    model.counters.noteSuccess(1, 9e6, 2e6, times(3));
    model.counters.noteSuccess(8, 9e6, 1e6, times(3));
    model.counters.noteFailure('BACKEND', 1e6);
    const rows: IndexRow[] = [
      ready(model),
      { name: 'squares', version: '4', state: 'LOADING' },
      { name: 'broken', state: 'UNAVAILABLE', reason: 'x'.repeat(1000) },
      { name: 'never' },
    ];
    const event = modelsEventOf({ rows: () => rows, loaded: () => [model] }, NOW);
    expect(event).toMatchObject({
      models: 4,
      states: { READY: 1, LOADING: 1, UNAVAILABLE: 1, UNKNOWN: 1 },
      waiting: 4,
      running: 6,
    });
    expect(event.rows[0]).toEqual({
      name: 'squares',
      version: '3',
      state: 'READY',
      reason: '',
      work: {
        kind: 'tensors',
        backend: 'fake',
        instances: { busy: 2, idle: 1, starting: 1, dead: 1 },
        restarts: 2,
        waiting: 4,
        running: 6,
        answered: 2,
        failures: { REJECTED: 0, CANCELED: 0, BACKEND: 1, OTHER: 0 },
        batches: 3,
        rows: 17,
        sizes: [
          [1, 1, 1],
          [8, 8, 2],
        ],
        sequences: null,
        adapters: null,
        queueMs: 1.5,
        computeMs: 3,
      },
    });
    expect(event.rows[1]).toEqual({
      name: 'squares',
      version: '4',
      state: 'LOADING',
      reason: '',
      work: null,
    });
    expect(event.rows[2]!.reason).toHaveLength(300);
    expect(event.rows[3]).toEqual({ name: 'never', version: null, state: null, reason: '', work: null });
  });

  it('has no times where nothing was measured', () => {
    const model = new ToldModel('new');
    const { rows } = modelsEventOf({ rows: () => [ready(model)], loaded: () => [model] }, NOW);
    expect(rows[0]!.work).toMatchObject({ batches: 0, sizes: [], queueMs: null, computeMs: null });
  });

  it('stays small with many models: those that change, fail or are asked go first, in the order of the index', () => {
    const models = Array.from({ length: 500 }, (_, i) => new ToldModel(`model-with-a-usual-name-${i}`));
    for (const model of models) {
      for (let size = 1; size <= 1000; size += 7) model.counters.noteExecution(size, times(1));
    }
    const rows = models.map(ready);
    models[499]!.now = { waiting: 1 };
    models[498]!.now = { instances: ['idle', 'dead'] };
    models[300]!.now = { lastInference: NOW - 3_600_000 };
    rows[400] = { name: 'gone', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' };
    rows[401] = { name: 'broken', version: '1', state: 'UNAVAILABLE', reason: 'no such file' };
    rows[402] = { name: 'coming', version: '1', state: 'LOADING' };
    const event = modelsEventOf({ rows: () => rows, loaded: () => models }, NOW);
    expect([event.models, event.rows.length]).toEqual([500, MAX_ROWS]);
    expect(event.states).toEqual({ READY: 497, UNAVAILABLE: 2, LOADING: 1 });
    const names = event.rows.map(({ name }) => name);
    const [a, b, c] = [
      'model-with-a-usual-name-300',
      'model-with-a-usual-name-498',
      'model-with-a-usual-name-499',
    ];
    expect(names.slice(-5)).toEqual([a, 'broken', 'coming', b, c]);
    expect(names[0]).toBe('model-with-a-usual-name-0');
    expect(names).not.toContain('gone');
    expect(JSON.stringify(event).length).toBeLessThan(45_000);
  });
});

describe('sizes of batches', () => {
  it('are told apart where they are few', () => {
    expect(sizesOf(batchesOf([4, 1, 4]))).toEqual([
      [1, 1, 1],
      [4, 4, 2],
    ]);
  });

  it('are ranges where they are many, none of which is lost', () => {
    const many = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 300 });
    const property = fc.property(many, (sizes) => {
      const found = sizesOf(batchesOf(sizes));
      expect(found.length).toBeLessThanOrEqual(19);
      expect(found.reduce((sum, [, , batches]) => sum + batches, 0)).toBe(sizes.length);
      for (const [i, [from, to, batches]] of found.entries()) {
        expect(from).toBeLessThanOrEqual(to);
        if (i > 0) expect(from).toBeGreaterThan(found[i - 1]![1]);
        // Sizes above 1024 share the last.
        const within = sizes.filter((size) => Math.min(size, 1024) >= from && Math.min(size, 1024) <= to);
        expect(within).toHaveLength(batches);
      }
    });
    fc.assert(property);
  });
});

it('the engine of a model of texts is one instance', () => {
  const counts = { running: 0, waiting: 3 };
  const state = new ModelState();
  const engine = { state, statistics: new ToldStatistics(() => counts) as never };
  const told = () => engineActivity(engine);
  expect(told()).toEqual({ running: 0, waiting: 3, instances: ['idle'], restarts: 0 });
  counts.running = 2;
  expect(told().instances).toEqual(['busy']);
  state.restart(new Error('It died.'));
  expect(told().instances).toEqual(['starting']);
  state.recover();
  expect(told()).toMatchObject({ instances: ['busy'], restarts: 1 });
  state.fail(new Error('It died.'));
  expect(told().instances).toEqual(['dead']);
});
