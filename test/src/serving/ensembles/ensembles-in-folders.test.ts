import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { int32, ModuleModels, numbersOf } from '../support/module-models.js';

const IO =
  'max_batch_size: 8\ninput: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [1]}]\n';
const ADD =
  'export const execute = (all) => all.map(({ inputs: { X } }) => ({ outputs: { Y: { data: X.data.map((x) => x + 1), shape: X.shape } } }));';
/** Each row is answered with the number of requests that are run together. */
const SIZES = `export const execute = (all) => all.map(({ batchSize }) => ({ outputs: { Y: { data: Array(batchSize).fill(all.length), shape: [batchSize, 1] } } }));`;

/** An ensemble of one input and output with these steps: `model A -> B`. */
function ensemble(steps: readonly string[], more = ''): string {
  const step = steps.map((text) => {
    const [, model, version = '-1', from, to] = /^([\w-]+)(?:@(\d+))? (\w+) -> (\w+)$/.exec(text)!;
    return `{model_name: ${model}, model_version: ${version}, input_map: {X: ${from}}, output_map: {Y: ${to}}}`;
  });
  return `platform: ensemble\n${IO}${more}ensemble_scheduling: {step: [${step.join(', ')}]}\n`;
}

const TWICE = ['add X -> T', 'add T -> Y'];

describe('ensembles in folders', () => {
  const models = new ModuleModels();
  const rowOf = (name: string) => models.repository.rows().find((row) => row.name === name);
  const states = (...names: string[]) => names.map((name) => rowOf(name)?.state);
  const faultOf = async (name: string) => {
    const error = await models.repository.load(name).then(
      () => null,
      (reason: Error) => reason,
    );
    return error?.message;
  };

  beforeAll(async () => {
    models.write('add', IO, ADD);
    models.write(
      'sizes',
      `${IO}dynamic_batching: {preferred_batch_size: [3], max_queue_delay_microseconds: 5000000}\n`,
      SIZES,
    );
    models.writeConfig('twice', ensemble(TWICE));
    models.writeConfig('four', ensemble(['twice X -> T', 'twice T -> Y']));
    models.writeConfig('sized', ensemble(['sizes X -> Y']));
    models.writeConfig('added-and-sized', ensemble(['add X -> T', 'sizes T -> Y']));
    await models.open('explicit', []);
  });
  afterEach(async () => {
    for (const { name } of models.repository.rows()) await models.repository.unload(name).catch(() => {});
  });
  afterAll(() => models.close());

  it('are loaded with their members, and theirs, and answer', async () => {
    await models.repository.load('four');
    expect(states('four', 'twice', 'add')).toEqual(['READY', 'READY', 'READY']);
    expect(await models.numbers('four', [[1], [10]])).toEqual([5, 14]);
    expect(await models.numbers('add', [[1]])).toEqual([2]);
    const statistics = (name: string) => models.repository.find(name, '').statistics();
    expect(statistics('four')).toMatchObject({ inference_count: 2, execution_count: 1 });
    expect(statistics('twice')).toMatchObject({ inference_count: 4, execution_count: 2 });
    expect(statistics('add')).toMatchObject({ inference_count: 9, execution_count: 5 });
    expect(statistics('four').batch_stats).toMatchObject([{ batch_size: 2, compute_infer: { count: 1 } }]);
    const ofMembers = statistics('add').inference_stats.compute_infer.ns;
    expect(statistics('four').inference_stats.compute_infer.ns).toBeLessThanOrEqual(ofMembers);
    expect(statistics('four').inference_stats.compute_infer.ns).toBeGreaterThan(0);
  });

  it('share batches with each other and with direct requests', async () => {
    await Promise.all(['sized', 'added-and-sized'].map((name) => models.repository.load(name)));
    const answers = await Promise.all(
      ['added-and-sized', 'sized', 'sizes'].map((name) => models.numbers(name, [[1]])),
    );
    expect(answers).toEqual([[3], [3], [3]]);
    expect(models.repository.find('sizes', '').statistics()).toMatchObject({
      inference_count: 3,
      execution_count: 1,
    });
  });

  it('are withdrawn with the reason when a member goes, and come back with it', async () => {
    await models.repository.load('four');
    await models.repository.unload('add');
    expect([rowOf('twice'), rowOf('four')]).toMatchObject([
      {
        state: 'UNAVAILABLE',
        reason: 'ensemble twice contains models that are not available or ambiguous: add',
      },
      {
        state: 'UNAVAILABLE',
        reason: expect.stringContaining(
          "ensemble 'four' depends on 'twice' which has no loaded version. Model 'twice' loading failed with error: ensemble twice contains",
        ),
      },
    ]);
    expect(() => models.repository.find('four', '')).toThrow(/'four' has no available versions/);
    await models.repository.load('add');
    expect(states('four', 'twice', 'add')).toEqual(['READY', 'READY', 'READY']);
    expect(await models.numbers('four', [[1]])).toEqual([5]);
  });

  it('do not come back where a client unloaded them', async () => {
    await models.repository.load('twice');
    await models.repository.unload('twice');
    await models.repository.unload('add');
    await models.repository.load('add');
    expect(states('twice', 'add')).toEqual(['UNAVAILABLE', 'READY']);
  });

  it('come as soon as a member that was missing does', async () => {
    models.writeConfig('early', ensemble(['late X -> Y']));
    expect(await faultOf('early')).toBe(
      "failed to load 'early', ensemble early contains models that are not available or ambiguous: late",
    );
    expect(rowOf('early')).toMatchObject({ state: 'UNAVAILABLE', reason: expect.stringContaining(': late') });
    models.write('late', IO, ADD);
    await models.repository.load('late');
    expect(await models.numbers('early', [[1]])).toEqual([2]);
    for (const name of ['early', 'late']) rmSync(join(models.folder, name), { recursive: true });
  });

  it('are held against a member that is loaded anew, and tell why they no longer fit', async () => {
    models.write('changing', IO, ADD);
    models.writeConfig('uses', ensemble(['changing X -> Y']));
    await models.repository.load('uses');
    const before = models.repository.find('uses', '');
    models.write('changing', IO, ADD.replace('x + 1', 'x + 2'));
    await models.repository.load('changing');
    expect(models.repository.find('uses', '')).toBe(before); // it still fits, and continues counting
    expect(await models.numbers('uses', [[1]])).toEqual([3]);
    models.write('changing', IO.replace('dims: [1]}]\noutput', 'dims: [2]}]\noutput'), ADD);
    await models.repository.load('changing');
    expect(rowOf('uses')).toMatchObject({
      state: 'UNAVAILABLE',
      reason:
        'in ensemble uses, ensemble tensor X: inconsistent shape: [-1,1] is inferred from model uses while [-1,2] is inferred from model changing',
    });
    models.write('changing', IO, ADD);
    await models.repository.load('changing');
    expect(await models.numbers('uses', [[1]])).toEqual([2]);
    await models.repository.unload('uses', { unloadDependents: true });
    for (const name of ['uses', 'changing']) rmSync(join(models.folder, name), { recursive: true });
  });

  it('take along what was loaded for them alone, where unload_dependents says so', async () => {
    await models.repository.load('four');
    await models.repository.load('sized');
    await models.repository.load('added-and-sized'); // needs add, and sizes as sized does
    await models.repository.unload('four', { unloadDependents: true });
    expect(states('four', 'twice', 'add')).toEqual(['UNAVAILABLE', 'UNAVAILABLE', 'READY']);
    await models.repository.load('sizes'); // a client wants it now
    await models.repository.unload('sized', { unloadDependents: true });
    await models.repository.unload('added-and-sized', { unloadDependents: true });
    expect(states('added-and-sized', 'add', 'sizes')).toEqual(['UNAVAILABLE', 'UNAVAILABLE', 'READY']);
  });

  it('in a circle are refused, whoever begins, and whoever loads at the same time', async () => {
    models.writeConfig('a', ensemble(['b X -> Y']));
    models.writeConfig('b', ensemble(['c X -> Y']));
    models.writeConfig('c', ensemble(['a X -> Y']));
    models.writeConfig('self', ensemble(['self X -> Y']));
    expect(await Promise.all(['a', 'b', 'self'].map(faultOf))).toEqual([
      "failed to load 'a', circular dependency between ensembles: a -> ... -> c -> a",
      "failed to load 'b', circular dependency between ensembles: b -> ... -> a -> b",
      "failed to load 'self', circular dependency between ensembles: self -> ... -> self -> self",
    ]);
    for (const name of ['a', 'b', 'c', 'self']) rmSync(join(models.folder, name), { recursive: true });
  });

  it('lie at most so deep in each other', async () => {
    models.writeConfig('deep0', ensemble(['add X -> Y']));
    for (let i = 1; i < 9; i++) models.writeConfig(`deep${i}`, ensemble([`deep${i - 1} X -> Y`]));
    await models.repository.load('deep7');
    expect(await models.numbers('deep7', [[1]])).toEqual([2]);
    expect(await faultOf('deep8')).toBe(
      "failed to load 'deep8', it would lie in 8 ensembles within each other",
    );
    for (let i = 0; i < 9; i++) rmSync(join(models.folder, `deep${i}`), { recursive: true });
  });

  it.each([
    [
      'a version that is not there',
      ensemble(['add@3 X -> Y']),
      "ensemble 'w' depends on 'add' whose required version 3 is not loaded.",
    ],
    [
      'instances',
      ensemble(['add X -> Y'], 'instance_group: [{count: 1}]\n'),
      "config.yaml:5: instance group should not be specified for ensemble 'w'",
    ],
    [
      'a warm-up',
      ensemble(['add X -> Y'], 'model_warmup: [{name: x}]\n'),
      "config.yaml:5: model_warmup can not be specified for ensemble 'w'",
    ],
    [
      'a batcher',
      ensemble(['add X -> Y'], 'dynamic_batching: {}\n'),
      'config.yaml:6: ensemble_scheduling and dynamic_batching exclude each other',
    ],
    [
      'another platform',
      ensemble(['add X -> Y']).replace('platform: ensemble', 'platform: onnxruntime_onnx'),
      "ensemble scheduling cannot be set for model 'w' whose platform is not ensemble",
    ],
    [
      'no steps',
      `platform: ensemble\n${IO}`,
      'config.yaml:1: ensemble scheduling must be set for ensemble w whose platform is ensemble',
    ],
    [
      'a step without a model',
      `${ensemble([])}`.replace('step: []', 'step: [{input_map: {X: X}, output_map: {Y: Y}}]'),
      "config.yaml:5: must specify 'model_name' in step 0 of ensemble 'w'",
    ],
    [
      'more rows than a member takes',
      ensemble(['add X -> Y']).replace('max_batch_size: 8', 'max_batch_size: 9'),
      'ensemble w allows maximum batch size 9, but it contains model add which only allows maximum batch size to be 8',
    ],
    [
      'too many steps',
      ensemble(Array.from({ length: 257 }, (_, i) => `add X -> T${i}`)),
      "ensemble 'w' has 257 steps; at most 256 are taken",
    ],
    [
      'labels that are not there',
      ensemble(['add X -> Y']).replace('name: Y,', 'name: Y, label_filename: labels.txt,'),
      'labels.txt cannot be read',
    ],
  ])('are refused with %s', async (_, config, message) => {
    models.writeConfig('w', config);
    await models.repository.load('add');
    expect(await faultOf('w')).toContain(message);
    rmSync(join(models.folder, 'w'), { recursive: true });
  });

  it('tell why a member could not be loaded', async () => {
    models.write('broken', IO, 'export const execute = (;');
    models.writeConfig('w', ensemble(['broken X -> Y']));
    expect(await faultOf('w')).toMatch(
      /^failed to load 'w', ensemble 'w' depends on 'broken' which has no loaded version\. Model 'broken' loading failed with error: .*model\.mjs:1:25: Unexpected token/s,
    );
    for (const name of ['w', 'broken']) rmSync(join(models.folder, name), { recursive: true });
  });

  it('take no further instance, and values for their parameters', async () => {
    await models.repository.load('twice');
    await expect(models.repository.load('twice', { share: false })).rejects.toThrow(
      /'twice' has no instances/,
    );
    const endpoint = await models.repository.load('twice', { values: { note: 'x' } });
    expect(endpoint).toBe('twice-0');
    expect(models.repository.find('twice-0', '').config).toMatchObject({
      parameters: { note: { string_value: 'x' } },
    });
    expect(await models.numbers('twice-0', [[1]])).toEqual([3]);
  });

  it('answer or fail, and never hang, while a member is loaded and unloaded all the time', async () => {
    await models.repository.load('four');
    let isOver = false;
    const changes = (async () => {
      for (let i = 0; i < 6; i++) {
        writeFileSync(join(models.folder, 'add/1/model.mjs'), `${ADD}// ${i}`);
        await (i % 2 === 0 ? models.repository.load('add') : models.repository.unload('add'));
      }
      await models.repository.load('add');
      isOver = true;
    })();
    const outcomes = { answered: 0, failed: new Set<string>() };
    while (!isOver) {
      await models.numbers('four', [[1]]).then(
        (answer) => {
          expect(answer).toEqual([5]);
          outcomes.answered++;
        },
        (error: Error) => outcomes.failed.add(error.message),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    await changes;
    for (const message of outcomes.failed)
      expect(message).toMatch(
        /in ensemble 'four'|'four' has no available|'four' is unloaded|'four', which is/,
      );
    await vi.waitFor(async () => expect(await models.numbers('four', [[1]])).toEqual([5]), 120_000);
    expect(outcomes.answered).toBeGreaterThan(0);
  });
});

describe('ensembles of folders that are polled', () => {
  const models = new ModuleModels();
  afterAll(() => models.close());

  it('come and go with what lies there', async () => {
    models.write('add', IO, ADD);
    models.writeConfig('twice', ensemble(TWICE));
    await models.open('poll');
    expect(await models.numbers('twice', [[1]])).toEqual([3]);
    rmSync(join(models.folder, 'add'), { recursive: true });
    await models.repository.poll();
    expect(models.repository.rows().find(({ name }) => name === 'twice')).toMatchObject({
      state: 'UNAVAILABLE',
    });
    models.write('add', IO, ADD.replace('x + 1', 'x + 10'));
    await models.repository.poll();
    const [response] = await models.infer('twice', [int32('X', [[1]])]);
    expect(numbersOf(response!.outputs[0]!)).toEqual([21]);
    rmSync(join(models.folder, 'twice'), { recursive: true });
    await models.repository.poll();
    expect(models.repository.loaded().map(({ config }) => config.name)).toEqual(['add']);
    expect(models.errors).toEqual([]);
  });
});
