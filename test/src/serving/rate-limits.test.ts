import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ModuleModels, numbersOf } from './support/module-models.js';

const models = new ModuleModels();
const LOG = join(models.folder, '.log');

/** Notes each execution as it begins and ends; a request with `gate` keeps its instance until there is such a file. */
const NOTING = `
import { appendFileSync, existsSync } from 'node:fs';
let name;
export function initialize({ modelName, infer }) { name = modelName; ask = infer; }
let ask;
const note = (text) => appendFileSync(${JSON.stringify(LOG)}, text + '\\n');
export async function execute(requests) {
  note(name + ' begins');
  const { gate, exits, asks } = requests[0].parameters;
  while (gate && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
  if (exits) process.exit(3);
  const asked = asks ? (await ask({ model: asks, inputs: { X: { data: Int32Array.of(7), shape: [1, 1] } } })).outputs.Y.data[0] : 0;
  note(name + ' ends');
  return requests.map(({ inputs: { X } }) => ({ outputs: { Y: { data: [X.data[0] + asked, requests.length] } } }));
}`;

const IO =
  'max_batch_size: 4\ninput: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [2]}]\n';
const limited = (needs: string, more = '', priority = 0) =>
  `${IO}instance_group: [{count: 1, rate_limiter: {resources: [${needs}], priority: ${priority}}}]\n${more}`;
const need = (name: string, count: number, more = '') => `{name: ${name}, count: ${count}${more}}`;

beforeAll(async () => {
  models.write('a', limited(need('R', 2)), NOTING);
  models.write('b', limited(need('R', 2), '', 2), NOTING);
  models.write('small', limited(need('R', 1)), NOTING);
  models.write('other', limited(need('Q', 1)), NOTING);
  models.write('free', IO, NOTING);
  models.write(
    'pair',
    `${IO}instance_group: [{count: 2, rate_limiter: {resources: [${need('R', 1)}]}}]\n`,
    NOTING,
  );
  models.write(
    'batched',
    limited(need('R', 2), 'dynamic_batching: {default_queue_policy: {allow_timeout_override: true}}\n'),
    NOTING,
  );
  models.write(
    'summing',
    `max_batch_size: 2\ninput: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [1]}]
instance_group: [{count: 1, rate_limiter: {resources: [${need('R', 2)}]}}]
sequence_batching: {max_sequence_idle_microseconds: 1000000000, oldest: {}}\n`,
    `const sums = new Map();
    export function execute(requests) {
      return requests.map(({ sequence: { number }, inputs: { X } }) => {
        sums.set(number, (sums.get(number) ?? 0) + X.data[0]);
        return { outputs: { Y: { data: [sums.get(number)] } } };
      });
    }`,
  );
  models.write('too_large', limited(`${need('Q', 1)}, ${need('R', 3)}`), NOTING);
  models.write('global', limited(need('Q', 1, ', global: true')), NOTING);
  const names = ['a', 'b', 'small', 'other', 'free', 'pair', 'batched', 'summing'];
  await models.open('explicit', names, { R: 2 });
});
afterAll(() => models.close());
beforeEach(() => writeFileSync(LOG, ''));

const noted = () => readFileSync(LOG, 'utf8').trim().split('\n');
const begun = () => noted().flatMap((line) => (line.endsWith(' begins') ? [line.split(' ')[0]!] : []));
const copies = (name: string) => models.limits!.uses.find((one) => one.name === name);
const ask = (model: string, parameters: Record<string, string> = {}, fields = {}) =>
  models.numbers(model, [[1]], { parameters, ...fields });

let numGates = 0;
const gate = () => join(models.folder, `.gate-${numGates++}`);
const open = (path: string) => writeFileSync(path, '');
/** An execution that keeps its resources until the gate is opened. */
async function held(model: string): Promise<{ path: string; answer: Promise<number[]> }> {
  const path = gate();
  const before = begun().length;
  const answer = ask(model, { gate: path });
  await expect.poll(() => begun().length).toBe(before + 1);
  return { path, answer };
}

describe('executions that need the same resource', () => {
  it('are one after the other, with half the chances for priority 2', async () => {
    const { path, answer } = await held('a');
    const asked = [
      ...Array.from({ length: 6 }, () => ask('a')),
      ...Array.from({ length: 3 }, () => ask('b')),
    ];
    await expect.poll(() => models.limits!.waiting).toBe(1);
    expect(copies('R')).toMatchObject({ limit: 2, used: 2 });
    open(path);
    await Promise.all([answer, ...asked]);
    // a executes with 0, then b with 0, a with 1; at equal products goes who has waited longer.
    expect(begun().join('')).toBe('ababaabaaa');
    // Nothing overlaps: each begin is followed by its end.
    expect(
      noted().every((line, i) => i % 2 === 0 || line === noted()[i - 1]!.replace('begins', 'ends')),
    ).toBe(true);
    expect(copies('R')!.used).toBe(0);
  });

  it('run together as far as the copies go, and others beside them', async () => {
    const { path, answer } = await held('small');
    const [one, other] = [await held('pair'), await held('other')];
    const waits = ask('b');
    await expect.poll(() => models.limits!.waiting).toBe(1);
    await ask('free');
    open(path);
    await answer;
    expect(begun().includes('b')).toBe(false);
    open(one.path);
    open(other.path);
    await Promise.all([waits, one.answer, other.answer]);
  });

  it('grow while they wait for their turn, and expire there', async () => {
    const { path, answer } = await held('a');
    const asked = [ask('batched'), ask('batched')];
    const expired = ask('batched', {}, { timeoutUs: 1000 });
    await expect(expired).rejects.toThrow('Request timeout expired');
    asked.push(ask('batched'));
    await expect.poll(() => models.limits!.waiting).toBe(1);
    open(path);
    await answer;
    expect(await Promise.all(asked)).toEqual([
      [1, 3],
      [1, 3],
      [1, 3],
    ]);
  });

  it('leave the queue when their only request is cancelled', async () => {
    const { path, answer } = await held('a');
    const controller = new AbortController();
    const waits = ask('b', {}, { signal: controller.signal });
    await expect.poll(() => models.limits!.waiting).toBe(1);
    controller.abort(new Error('enough'));
    await expect(waits).rejects.toThrow('enough');
    await expect.poll(() => models.limits!.waiting).toBe(0);
    open(path);
    await answer;
  });

  it('give it back where their instance is lost', async () => {
    const lost = ask('a', { exits: 'yes' });
    const next = ask('b');
    await expect(lost).rejects.toThrow('exit');
    await next;
    expect(await ask('a')).toEqual([1, 1]);
  });

  it('give it back while they wait for other models, which need it too', async () => {
    expect(await ask('a', { asks: 'b' })).toEqual([8, 1]);
    expect(noted()).toEqual(['a begins', 'b begins', 'b ends', 'a ends']);
    const both = [ask('a', { asks: 'b' }), ask('b', { asks: 'small' })];
    expect(await Promise.all(both)).toEqual([
      [8, 1],
      [8, 1],
    ]);
    expect(copies('R')!.used).toBe(0);
  });

  it('of sequences come in their order', async () => {
    const step = async (id: bigint, start: boolean) => {
      const [response] = await models.infer(
        'summing',
        [{ name: 'X', datatype: 'INT32', shape: [1, 1], data: new Uint8Array(Int32Array.of(5).buffer) }],
        { sequence: { id, start, end: false } },
      );
      return numbersOf(response!.outputs[0]!)[0];
    };
    const { path, answer } = await held('a');
    const first = [step(1n, true), step(2n, true), step(1n, false)];
    await expect.poll(() => models.limits!.waiting).toBe(1);
    open(path);
    await answer;
    expect(await Promise.all(first)).toEqual([5, 5, 10]);
  });
});

describe('a load', () => {
  it('of instances that could never run is refused, with the place', async () => {
    await expect(models.repository.load('too_large')).rejects.toThrow(
      /too_large\/config\.yaml:\d+: instance_group\[0\]\.rate_limiter\.resources\[1\]\.count is 3; --rate-limit-resource gives 2 of 'R'\./,
    );
    await expect(models.repository.load('global')).rejects.toThrow(
      "resources[0].global is true for 'Q', which is a resource of the device for instances that are loaded or listed before.",
    );
    expect(copies('Q')).toMatchObject({ isGlobal: false, limit: 1 });
  });

  it('that changes instance_group alone changes what its instances need, and adds some with their own turns', async () => {
    const group = (count: number) =>
      `${IO}instance_group: [{count: 2, rate_limiter: {resources: [${need('S', count)}]}}]\n`;
    models.write('staying', group(1), NOTING);
    await models.repository.load('staying');
    const model = models.repository.find('staying', '');
    expect(copies('S')).toMatchObject({ limit: 1 });
    const { path, answer } = await held('staying');
    const config = `backend: module\n${group(3)}`;
    writeFileSync(join(models.folder, 'staying/config.yaml'), config);
    await models.repository.load('staying');
    expect(models.repository.find('staying', '')).toBe(model);
    expect(copies('S')).toMatchObject({ limit: 3, used: 1 });
    const waits = ask('staying');
    await expect.poll(() => models.limits!.waiting).toBeGreaterThan(0);
    open(path);
    expect([await answer, await waits]).toEqual([
      [1, 1],
      [1, 1],
    ]);
    await models.repository.unload('staying');
    expect(copies('S')).toBeUndefined();
  });

  it('and an unload change how many copies there are by need', async () => {
    await models.repository.unload('other');
    expect(copies('Q')).toBeUndefined();
    await models.repository.load('global');
    expect(copies('Q')).toMatchObject({ isGlobal: true, limit: 1 });
    await ask('global');
    await models.repository.unload('global');
    await models.repository.load('other');
  });
});
