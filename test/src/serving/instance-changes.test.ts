import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeOf, instancesOf } from '../../../src/serving/batched/model-instances.js';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';

const models = new ModuleModels();
const LOG = join(models.folder, '.log');
const BROKEN = join(models.folder, '.broken');

/** Notes the begin and the end of each instance; answers with the instance's own number, and the sum of its sequence. */
const CODE = `
import { appendFileSync, existsSync } from 'node:fs';
const note = (text) => appendFileSync(${JSON.stringify(LOG)}, text + '\\n');
const own = Math.floor(Math.random() * 1e9);
const sums = new Map();
let name;
export function initialize({ instanceName }) {
  name = instanceName;
  if (existsSync(${JSON.stringify(BROKEN)})) throw new Error('no more instances');
  note(name + ' begins');
}
export async function execute(requests) {
  for (const { parameters: { gate } } of requests)
    while (gate && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
  return requests.map(({ sequence, inputs: { X } }) => {
    const key = sequence?.number ?? 0;
    sums.set(key, (sums.get(key) ?? 0) + X.data[0]);
    return { outputs: { Y: { data: [own, sums.get(key)] } } };
  });
}
export function finalize() { note(name + ' ends'); }
`;
const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [2]}]\n';
const group = (count: number, name = 'g') => `instance_group: [{name: ${name}, count: ${count}}]\n`;
const PLAIN = `max_batch_size: 1\n${IO}`;
const SEQUENCES = `${PLAIN}sequence_batching: {max_sequence_idle_microseconds: 1000000000, direct: {}}\n`;

const write = (name: string, config: string) => models.write(name, config, CODE);
const configure = (name: string, config: string) =>
  writeFileSync(join(models.folder, name, 'config.yaml'), `backend: module\n${config}`);

beforeAll(async () => {
  writeFileSync(LOG, '');
  write('plain', PLAIN + group(1));
  write('sums', SEQUENCES + group(2));
  write('held', PLAIN + group(2));
  await models.open('explicit', ['plain', 'sums', 'held']);
});
afterAll(() => models.close());

let taken = 0;
/** The lines that have not been taken. The file is never emptied: a line that is written meanwhile would be lost. */
const noted = () => readFileSync(LOG, 'utf8').split('\n').slice(taken, -1);
const take = () => {
  const lines = noted();
  taken += lines.length;
  return lines.sort();
};
const found = (name: string) => models.repository.find(name, '');
const count = (name: string) => found(name).activity().instances.length;
const ask = (name: string, gate?: string) =>
  models.numbers(name, [[1]], gate === undefined ? {} : { parameters: { gate } });

/** The instance that answers, and the sum of the sequence. */
async function step(id: bigint, value: number, flags: { start?: boolean; end?: boolean } = {}) {
  const sequence = { id, start: false, end: false, ...flags };
  const [answer] = await models.infer('sums', [int32('X', [[value]])], { sequence });
  return numbersOf(answer!.outputs[0]!);
}

describe('a load that changes instance_group alone', () => {
  it('adds instances beside those that run, which go on', async () => {
    const [own, first] = await ask('plain');
    expect(first).toBe(1);
    take();
    await models.repository.load('plain', { share: false });
    expect([count('plain'), take()]).toEqual([2, ['g_1 begins']]);
    const model = found('plain');
    configure('plain', PLAIN + group(3));
    await models.repository.load('plain');
    // The load counts in addition to the instance that was added before.
    expect([found('plain') === model, count('plain'), take()]).toEqual([
      true,
      4,
      ['g_2 begins', 'g_3 begins'],
    ]);
    expect(model.config.instance_group).toMatchObject([{ name: 'g', count: 4 }]);
    const gate = join(models.folder, '.gate-0');
    const asked = [1, 2, 3, 4].map(() => ask('plain', gate));
    await expect.poll(() => model.activity().instances.filter((state) => state === 'busy').length).toBe(4);
    writeFileSync(gate, '');
    const answers = await Promise.all(asked);
    expect(answers.find(([instance]) => instance === own)).toEqual([own, 2]);
    expect(new Set(answers.map(([instance]) => instance)).size).toBe(4);
    expect(model.activity().restarts).toBe(0);
    expect(model.statistics().execution_count).toBe(5);
  });

  it('lets sequences go on where they are, until they end', async () => {
    const [one] = await step(1n, 5, { start: true });
    const [two] = await step(2n, 50, { start: true });
    expect(one).not.toBe(two);
    take();
    configure('sums', SEQUENCES + group(1, 'other'));
    await models.repository.load('sums');
    expect([count('sums'), take()]).toEqual([1, ['other_0 begins']]);
    expect(await step(1n, 6)).toEqual([one, 11]);
    const [three, sum] = await step(3n, 7, { start: true });
    expect([three === one || three === two, sum]).toEqual([false, 7]);
    // The new instance has its one sequence: another one waits, though the former instances have slots that will be free.
    const waits = step(4n, 8, { start: true });
    expect(await step(1n, 1, { end: true })).toEqual([one, 12]);
    await expect.poll(take).toEqual([expect.stringMatching(/^g_\d ends$/)]);
    expect(await step(2n, 1)).toEqual([two, 51]);
    await step(3n, 1, { end: true });
    expect(await waits).toEqual([three, 8]);
    expect(await step(2n, 1, { end: true })).toEqual([two, 52]);
    await expect.poll(take).toEqual([expect.stringMatching(/^g_\d ends$/)]);
    expect(await step(4n, 1, { end: true })).toEqual([three, 9]);
  });

  it('removes an instance when it has done what it has', async () => {
    const gate = join(models.folder, '.gate-1');
    const asked = [ask('held', gate), ask('held', gate)];
    await expect.poll(() => found('held').activity().instances).toEqual(['busy', 'busy']);
    take();
    configure('held', PLAIN + group(1));
    await models.repository.load('held');
    expect([count('held'), existsSync(gate), take()]).toEqual([1, false, []]);
    const third = ask('held');
    writeFileSync(gate, '');
    const [first, second] = await Promise.all(asked);
    await expect.poll(take).toEqual(['g_1 ends']);
    expect([first![0], second![0]]).toContain((await third)[0]);
  });

  it('that cannot have its new instances changes nothing', async () => {
    const own = (await ask('held'))[0];
    writeFileSync(BROKEN, '');
    try {
      await expect(models.repository.load('held', { share: false })).rejects.toThrow('no more instances');
    } finally {
      rmSync(BROKEN);
    }
    expect([count('held'), (await ask('held'))[0]]).toEqual([1, own]);
    expect(found('held').config.instance_group).toMatchObject([{ count: 1 }]);
    await models.repository.load('held', { share: false });
    expect(count('held')).toBe(2);
  });
});

describe('a load that changes more', () => {
  it('loads all instances anew', async () => {
    const model = found('held');
    take();
    configure('held', `${PLAIN}${group(2)}model_transaction_policy: {decoupled: true}\n`);
    await models.repository.load('held');
    expect(found('held')).not.toBe(model);
    await expect.poll(() => noted().filter((line) => line.endsWith('ends')).length).toBe(2);
    const again = found('held');
    write('held', `${PLAIN}${group(1)}model_transaction_policy: {decoupled: true}\n`);
    writeFileSync(join(models.folder, 'held/1/more.txt'), 'a file more');
    await models.repository.load('held');
    expect(found('held')).not.toBe(again);
  });
});

it('keeps instances of the same name and limits', () => {
  const limited = (count: number) => ({ resources: [{ name: 'R', global: false, count }], priority: 0 });
  const one = { name: 'a', kind: 'KIND_CPU' as const, count: 2 };
  const other = { name: 'b', kind: 'KIND_CPU' as const, count: 1, rate_limiter: limited(1) };
  const present = new Map(instancesOf([one, other]).map((instance, i) => [i, instance]));
  const names = (groups: Parameters<typeof instancesOf>[0]) => {
    const { added, removed } = changeOf(present, groups);
    return [added.map(({ name }) => name), removed];
  };
  expect(names([one, other])).toEqual([[], []]);
  expect(names([other, { ...one, count: 3 }])).toEqual([['a_2'], []]);
  expect(names([{ ...one, count: 1 }])).toEqual([[], [1, 2]]);
  expect(names([one, { ...other, rate_limiter: limited(2) }])).toEqual([['b_0'], [2]]);
});
