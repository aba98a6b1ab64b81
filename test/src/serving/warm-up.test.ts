import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packElements } from '../../../callbacks/infer/byte-elements.js';
import { ModuleModels } from './support/module-models.js';

const models = new ModuleModels();

interface Execution {
  instance: string;
  requests: { shape: number[]; data: (number | string)[]; batchSize: number; outputs: unknown }[];
}

/** Notes every execution of an instance in a file, and does what the first number says: fails, throws, or ends the worker. */
const NOTING = `
import { appendFileSync } from 'node:fs';
let instance;
export function initialize({ instanceName }) { instance = instanceName; }
export function execute(requests) {
  const noted = requests.map(({ inputs: { X }, batchSize, outputs }) => ({
    shape: X.shape, data: [...(X.datatype === 'BYTES' ? X.texts : X.data)].map((x) => typeof x === 'bigint' ? String(x) : x), batchSize, outputs }));
  appendFileSync(new URL('../noted.jsonl', import.meta.url), JSON.stringify({ instance, requests: noted }) + '\\n');
  return requests.map(({ inputs: { X } }) => {
    if (X.data[0] === 66) return { error: 'it was asked to fail' };
    if (X.data[0] === 77) throw new Error('no luck');
    if (X.data[0] === 88) process.exit(3);
    return { outputs: { Y: X } };
  });
}`;

const io = (type: string, dims: string) =>
  `input: [{name: X, data_type: ${type}, dims: ${dims}}]\noutput: [{name: Y, data_type: ${type}, dims: ${dims}}]\n`;

const sample = (name: string, fields: string, input: string) =>
  `{name: ${name}, ${fields}, inputs: {X: ${input}}}`;

function put(name: string, config: string, files: Record<string, Uint8Array> = {}): void {
  models.write(name, config, NOTING);
  mkdirSync(join(models.folder, name, 'warmup'));
  for (const [file, data] of Object.entries(files))
    writeFileSync(join(models.folder, name, 'warmup', file), data);
}

const noted = (name: string): Execution[] =>
  readFileSync(join(models.folder, name, 'noted.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

const bytes = (...values: number[]) => new Uint8Array(Int32Array.from(values).buffer);

beforeAll(async () => {
  const data = '{data_type: TYPE_INT32, dims: [2], ';
  put(
    'warm',
    `max_batch_size: 4\n${io('TYPE_INT32', '[2]')}instance_group: [{count: 2}]
model_warmup: [
  ${sample('zeros', 'batch_size: 3', `${data}zero_data: true}`)},
  ${sample('from a file', 'batch_size: 1, count: 2', `${data}input_data_file: rows}`)},
  ${sample('none', 'batch_size: 0', `${data}zero_data: true}`)}]\n`,
    { rows: bytes(5, 6, 7) },
  );
  put(
    'texts',
    `max_batch_size: 0\n${io('TYPE_STRING', '[-1]')}model_warmup: [
  ${sample('empty', 'batch_size: 1', '{data_type: TYPE_STRING, dims: [2], random_data: true}')},
  ${sample('words', 'batch_size: 1', '{data_type: TYPE_STRING, dims: [2], input_data_file: words}')}]\n`,
    { words: packElements(['ant', 'bee']) },
  );
  for (const type of ['FP16', 'BF16', 'FP32', 'FP64', 'BOOL', 'UINT8']) {
    const input = `{data_type: TYPE_${type}, dims: [100], random_data: true}`;
    put(
      `of_${type}`,
      `${io(`TYPE_${type}`, '[100]')}model_warmup: [${sample('random', 'batch_size: 1', input)}]\n`,
    );
  }
  for (const [name, value] of [
    ['failing', 66],
    ['throwing', 77],
    ['exiting', 88],
  ] as const) {
    const samples = [
      sample('first', 'batch_size: 1', `${data}zero_data: true}`),
      sample('unlucky', 'batch_size: 2', `${data}input_data_file: bad}`),
    ];
    put(name, `max_batch_size: 4\n${io('TYPE_INT32', '[2]')}model_warmup: [${samples}]\n`, {
      bad: bytes(value, 0),
    });
  }
  put(
    'summing',
    `max_batch_size: 2\n${io('TYPE_INT32', '[1]')}sequence_batching: {max_sequence_idle_microseconds: 600000000, oldest: {}}
model_warmup: [${sample('zeros', 'batch_size: 2', '{data_type: TYPE_INT32, dims: [1], zero_data: true}')}]\n`,
  );
  put(
    'short',
    `${io('TYPE_INT32', '[2]')}model_warmup: [\n  ${sample('s', 'batch_size: 1', `${data}input_data_file: rows}`)}]\n`,
    { rows: bytes(1) },
  );
  put(
    'missing',
    `${io('TYPE_INT32', '[2]')}model_warmup: [\n  ${sample('s', 'batch_size: 1', `${data}input_data_file: rows}`)}]\n`,
  );
  put(
    'odd_texts',
    `${io('TYPE_STRING', '[2]')}model_warmup: [${sample('s', 'batch_size: 1', '{data_type: TYPE_STRING, dims: [2], input_data_file: words}')}]\n`,
    { words: packElements(['ant', 'bee', 'cat']) },
  );
  const names = [
    'warm',
    'texts',
    'of_FP16',
    'of_BF16',
    'of_FP32',
    'of_FP64',
    'of_BOOL',
    'of_UINT8',
    'summing',
  ];
  await models.open('explicit', names);
});
afterAll(() => models.close());

const load = (name: string) =>
  models.repository.load(name).then(
    () => 'loaded',
    (error: Error) => error.message,
  );

describe('a model with warm-up', () => {
  it('runs its samples on each instance before it answers, and counts nothing of it', () => {
    const all = noted('warm');
    for (const instance of ['warm_0_0', 'warm_0_1']) {
      const own = all.filter((one) => one.instance === instance).map(({ requests }) => requests);
      const row = (data: number[]) => ({ shape: [1, 2], data, batchSize: 1, outputs: null });
      expect(own).toEqual([[row([0, 0]), row([0, 0]), row([0, 0])], [row([5, 6])], [row([5, 6])]]);
    }
    expect(models.repository.find('warm', '').statistics()).toMatchObject({
      inference_count: 0,
      execution_count: 0,
      last_inference: 0,
      inference_stats: { success: { count: 0 }, fail: { count: 0 } },
    });
  });

  it('does so on an instance that is started anew', async () => {
    const before = noted('warm').length;
    await expect(models.numbers('warm', [[88, 0]])).rejects.toThrow('Instance warm_0_');
    await expect
      .poll(() => models.repository.find('warm', '').activity().instances)
      .toEqual(['idle', 'idle']);
    expect(noted('warm')).toHaveLength(before + 4);
    expect(await models.numbers('warm', [[1, 2]])).toEqual([1, 2]);
  });

  it('has texts that are empty, or from a file', () => {
    expect(noted('texts').map(({ requests }) => requests[0]!.data)).toEqual([
      ['', ''],
      ['ant', 'bee'],
    ]);
    expect(noted('texts')[0]!.requests[0]!.shape).toEqual([2]);
  });

  it.each(['FP16', 'BF16', 'FP32', 'FP64', 'BOOL', 'UINT8'])(
    'has numbers at random that make sense: %s',
    (type) => {
      const [{ requests }] = noted(`of_${type}`) as [Execution];
      const data = requests[0]!.data as number[];
      const isBelow: Record<string, (value: number) => boolean> = {
        FP16: (value) => value < 0x3c00,
        BF16: (value) => value < 0x3f80,
        BOOL: (value) => value === 0 || value === 1,
        UINT8: (value) => value < 256,
      };
      expect(data).toHaveLength(100);
      expect(new Set(data).size).toBeGreaterThan(1);
      for (const value of data) expect((isBelow[type] ?? ((x) => x >= 0 && x < 1))(value)).toBe(true);
    },
  );

  it('with sequences has one for each row, of which nothing is kept', async () => {
    expect(noted('summing').map(({ requests }) => requests.map(({ data }) => data))).toEqual([[[0], [0]]]);
    expect(models.repository.find('summing', '').activity().sequences).toEqual({ live: 0, backlog: 0 });
  });

  it('cannot be loaded where a sample fails, and says which', async () => {
    expect(await load('failing')).toBe(
      "failed to load 'failing', failed to run warmup sample 'unlucky': it was asked to fail",
    );
    expect(await load('throwing')).toMatch(
      /^failed to load 'throwing', failed to run warmup sample 'unlucky': .*model\.mjs:\d+:\d+: no luck$/,
    );
    expect(await load('exiting')).toMatch(/^failed to load 'exiting', Instance exiting_0_0's worker thread/);
    expect(noted('failing').map(({ requests }) => requests.length)).toEqual([1, 2]);
  });

  it('cannot be loaded where a file is not what its input takes', async () => {
    expect(await load('short')).toMatch(
      /config\.yaml:5: model_warmup\[0\]\.inputs\.X\.input_data_file is .*warmup\/rows, which has 4 bytes; 8 are expected\.$/,
    );
    expect(await load('missing')).toMatch(
      /input_data_file is 'rows', but there is no file .*missing\/warmup\/rows\.$/,
    );
    expect(await load('odd_texts')).toMatch(/words has 3 elements; input 'X' takes 2, each after its length/);
  });
});
