import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InferCall, ModelServer as Server } from '../../../src/index.js';

/** As it was compiled: instances run in workers. */
const { InferError, ModelServer, ParameterError } = (await import(
  new URL('../../../dist/src/index.js', import.meta.url).href
)) as typeof import('../../../src/index.js');

const folder = mkdtempSync(join(tmpdir(), 'skein-model-server-'));
let server: Server;

function write(name: string, config: string, code: string): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.yaml'), `backend: module\n${config}`);
  writeFileSync(join(folder, name, '1/model.mjs'), code);
}

beforeAll(async () => {
  write(
    'sums',
    `max_batch_size: 8
dynamic_batching: {max_queue_delay_microseconds: 100000}
input: [{name: X, data_type: TYPE_INT32, dims: [2]}]
output: [{name: SUM, data_type: TYPE_INT32, dims: [1]}, {name: ROWS, data_type: TYPE_INT32, dims: [1]}]`,
    `export const execute = (all) => all.map(({ inputs: { X: { data, shape } } }) => {
      const rows = Int32Array.from({ length: shape[0] }, (_, i) => data[2 * i] + data[2 * i + 1]);
      return { outputs: { SUM: { data: rows, shape: [shape[0], 1] }, ROWS: { data: rows.map(() => all.length), shape: [shape[0], 1] } } };
    });`,
  );
  write(
    'echo',
    `max_batch_size: 0
input: [{name: T, data_type: TYPE_STRING, dims: [-1]}]
output: [{name: T, data_type: TYPE_STRING, dims: [-1]}]`,
    `export const execute = (all) => all.map(({ inputs, id, parameters }) => ({ outputs: { T: inputs.T }, parameters: { ...parameters, asked: id } }));`,
  );
  write(
    'counts',
    `max_batch_size: 0
input: [{name: N, data_type: TYPE_INT32, dims: [1]}]
output: [{name: OUT, data_type: TYPE_INT32, dims: [1]}]
model_transaction_policy: {decoupled: true}`,
    `let ended = 0;
    export async function* execute([{ inputs: { N: { data: [n] } } }]) {
      if (n < 0) throw new Error('there is no number below zero');
      try {
        for (let i = 0; i < n; i++) yield [{ outputs: { OUT: { data: Int32Array.of(n === 1 ? ended : i) } } }];
      } finally {
        if (n > 1000) ended++;
      }
    }`,
  );
  write('broken', 'max_batch_size: 0', 'export const execute = ;');
  server = await ModelServer.open({ modelRepository: folder, loadModels: ['sums', 'echo', 'counts'] });
});

afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

const sums = (data: number[], more: Partial<InferCall> = {}) =>
  server.infer({ model: 'sums', inputs: { X: { data } }, ...more });
const counts = (n: number, more: Partial<InferCall> = {}) =>
  server.stream({ model: 'counts', inputs: { N: { data: [n] } }, ...more });

describe('a ModelServer', () => {
  it('answers with arrays of their type, in the shape of the configuration', async () => {
    const { outputs } = await sums([1, 2, 3, 4]);
    expect(outputs.SUM).toMatchObject({ data: Int32Array.of(3, 7), shape: [2, 1] });
  });

  it('batches what is asked at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map((x) => sums([x, x])));
    expect(answers.map(({ outputs }) => outputs.SUM!.data![0])).toEqual([2, 4, 6, 8]);
    expect(answers.map(({ outputs }) => outputs.ROWS!.data![0])).toEqual([4, 4, 4, 4]);
  });

  it('gives the outputs that are asked for', async () => {
    const { outputs } = await sums([1, 2], { outputs: ['SUM'] });
    expect(Object.keys(outputs)).toEqual(['SUM']);
  });

  it('takes texts, parameters and an id', async () => {
    const { outputs, parameters } = await server.infer({
      model: 'echo',
      inputs: { T: { data: ['a', 'ä', ''] } },
      parameters: { level: 3, loud: true },
      id: 'seven',
    });
    expect(outputs.T!.texts).toEqual(['a', 'ä', '']);
    expect(parameters).toMatchObject({ level: 3, loud: true, asked: 'seven' });
  });

  it('streams any number of answers, and one of models that give one', async () => {
    const all = [];
    for await (const { outputs } of counts(5)) all.push(outputs.OUT!.data![0]);
    expect(all).toEqual([0, 1, 2, 3, 4]);
    for await (const _ of counts(0)) throw new Error('no answer is expected');
    const one = [];
    for await (const { outputs } of server.stream({ model: 'sums', inputs: { X: { data: [1, 2] } } }))
      one.push(outputs.SUM!.data![0]);
    expect(one).toEqual([3]);
  });

  it('ends a request whose loop is left', async () => {
    for await (const _ of counts(1_000_000)) break;
    const ended = async () => {
      for await (const { outputs } of counts(1)) return outputs.OUT!.data![0];
      throw new Error('an answer is expected');
    };
    await expect.poll(ended).toBe(1);
  });

  it('refuses infer of a decoupled model', async () => {
    const asked = server.infer({ model: 'counts', inputs: { N: { data: [1] } } });
    await expect(asked).rejects.toMatchObject({ code: 'SKEIN_INFER', kind: 'unsupported' });
  });

  it('rejects with the reason of its signal', async () => {
    const reason = new Error('enough');
    await expect(sums([1, 2], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const leaving = new AbortController();
    const asked = sums([1, 2], { signal: leaving.signal });
    leaving.abort(reason);
    await expect(asked).rejects.toBe(reason);
    const streaming = new AbortController();
    const loop = async () => {
      for await (const _ of counts(1_000_000, { signal: streaming.signal })) streaming.abort(reason);
    };
    await expect(loop()).rejects.toBe(reason);
  });

  it('rejects with what a model throws', async () => {
    await expect(counts(-1).next()).rejects.toThrow('there is no number below zero');
  });

  it.each<[string, object, string]>([
    ['an unknown field', { model: 'sums', inputs: {}, input: {} }, 'input'],
    ['no inputs', { model: 'sums' }, 'inputs'],
    ['no model', { inputs: {} }, 'model'],
    ['a version that is none', { model: 'sums', inputs: {}, version: 'x' }, 'version'],
    ['a priority below zero', { model: 'sums', inputs: {}, priority: -1 }, 'priority'],
    ['an id of a sequence below zero', { model: 'sums', inputs: {}, sequence: { id: -1n } }, 'sequence'],
    ['a sequence without an id', { model: 'sums', inputs: {}, sequence: {} }, 'sequence'],
  ])('refuses %s', async (_, call, param) => {
    const error = await server.infer(call as InferCall).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ParameterError);
    expect((error as InstanceType<typeof ParameterError>).field).toBe(param);
  });

  it.each<[string, Partial<InferCall>, string]>([
    ['a model that there is not', { model: 'nope' }, 'notFound'],
    ['a version that there is not', { version: '7' }, 'notFound'],
    ['an input that there is not', { inputs: { Z: { data: [1] } } }, 'invalid'],
    ['too few numbers', { inputs: { X: { data: [1, 2, 3] } } }, 'invalid'],
    ['another shape', { inputs: { X: { data: [1, 2], shape: [2, 2] } } }, 'invalid'],
    ['another type', { inputs: { X: { data: [1, 2], datatype: 'FP32' } } }, 'invalid'],
    ['a shape that is none', { inputs: { X: { data: [1, 2], shape: '12' as never } } }, 'invalid'],
    ['sizes that are no whole numbers', { inputs: { X: { data: [1, 2, 3], shape: [1.5, 2] } } }, 'invalid'],
    ['numbers that are not whole', { inputs: { X: { data: [1.5, 2] } } }, 'invalid'],
    ['numbers beyond their type', { inputs: { X: { data: [2 ** 31, 2] } } }, 'invalid'],
    ['big numbers beyond their type', { inputs: { X: { data: [1n, -(2n ** 31n) - 1n] } } }, 'invalid'],
    ['what is no number', { inputs: { X: { data: [Number.NaN, 2] } } }, 'invalid'],
    ['what only has a length', { inputs: { X: { data: { length: 1e9 } as never } } }, 'invalid'],
    ['no data', { inputs: { X: {} as never } }, 'invalid'],
    ['an output that there is not', { outputs: ['NOPE'] }, 'invalid'],
    ['a long id of a sequence', { sequence: { id: 'x'.repeat(129) } }, 'unsupported'],
    ['parameters that are objects', { parameters: { a: {} as never } }, 'invalid'],
  ])('refuses %s', async (_, call, kind) => {
    const error = await sums([1, 2], call).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InferError);
    expect((error as InstanceType<typeof InferError>).kind).toBe(kind);
  });

  it('says what is wrong with an input that is no tensor, and takes an answer as an input', async () => {
    const ask = (input: object) => sums([], { inputs: { X: input as never } });
    await expect(ask({ dat: [1, 2] })).rejects.toThrow(
      "the input of 'sums' is wrong: 'X' has a field 'dat', which is none of a tensor; did you mean 'data'?",
    );
    await expect(ask({ data: [1, 2], colour: 1 })).rejects.toThrow('its fields are data, shape, datatype');
    await expect(ask({ data: { length: 1e9 } })).rejects.toThrow(
      "'X' has no data: a typed array or a list is expected",
    );
    const { outputs } = await sums([1, 2, 3, 4], { outputs: ['SUM'] });
    const again = await ask({ ...outputs.SUM, data: outputs.SUM!.data, shape: [1, 2] });
    expect(again.outputs.SUM!.data![0]).toBe(10);
    const echoed = await server.infer({ model: 'echo', inputs: { T: { data: ['a'] } } });
    const twice = await server.infer({ model: 'echo', inputs: { T: echoed.outputs.T as never } });
    expect(twice.outputs.T!.texts).toEqual(['a']);
  });

  it('tells of its models', async () => {
    expect(server.metadata('sums')).toMatchObject({
      name: 'sums',
      versions: ['1'],
      inputs: [{ name: 'X', datatype: 'INT32', shape: [-1, 2] }],
    });
    expect(server.config('sums')).toMatchObject({ max_batch_size: 8 });
    expect(server.isReady('sums')).toBe(true);
    expect(server.isReady('broken')).toBe(false);
    const [before] = server.statistics('sums');
    await sums([1, 2]);
    const [after] = server.statistics('sums');
    expect(after!.inference_count).toBe(before!.inference_count + 1);
    const ready = await server.index({ readyOnly: true });
    expect(ready.map(({ name }) => name).sort()).toEqual(['counts', 'echo', 'sums']);
    expect((await server.index()).map(({ name }) => name)).toContain('broken');
  });

  it('loads and unloads models', async () => {
    await expect(server.load('broken')).rejects.toMatchObject({ code: 'SKEIN_INFER' });
    await server.unload('echo');
    const echo = () => server.infer({ model: 'echo', inputs: { T: { data: ['a'] } } });
    await expect(echo()).rejects.toMatchObject({ kind: 'notFound' });
    expect(await server.load('echo')).toBe('echo');
    expect((await echo()).outputs.T!.texts).toEqual(['a']);
  });
});

describe('ModelServer.open', () => {
  it('refuses options that it does not have', async () => {
    await expect(ModelServer.open({ repository: folder } as never)).rejects.toThrow(ParameterError);
    await expect(ModelServer.open({ modelRepository: 7 } as never)).rejects.toThrow(ParameterError);
  });

  it('rejects with what is wrong with a model', async () => {
    await expect(ModelServer.open({ modelRepository: folder })).rejects.toThrow(/broken/);
    await expect(ModelServer.open({ modelRepository: join(folder, 'nowhere') })).rejects.toThrow(/nowhere/);
  });

  it('has models of texts by name, and takes nothing once it is closed', async () => {
    const texts = await ModelServer.open({ models: { gosling: { model: 'models/demo/gosling' } } });
    const call = {
      model: 'gosling',
      inputs: { text_input: { data: ['Once'] } },
      parameters: { max_tokens: 3 },
    };
    const { outputs } = await texts.infer(call);
    expect(outputs.text_output!.texts).toHaveLength(1);
    await texts.close();
    const closed = {
      kind: 'unavailable',
      message: "Request for model 'gosling': this ModelServer is closed",
    };
    await expect(texts.infer(call)).rejects.toMatchObject(closed);
    await expect(texts.stream(call).next()).rejects.toMatchObject(closed);
    expect(() => texts.metadata('gosling')).toThrow(closed.message);
    expect(texts.isReady('gosling')).toBe(false);
  });
});
