import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';

const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';
const BATCHED = `${IO}max_batch_size: 8\n`;
const echo = 'execute = (requests) => requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));';

const models = new ModuleModels();

beforeAll(async () => {
  models.write('echo', BATCHED, `export const ${echo}`);
  models.write(
    'sizes',
    `${BATCHED}dynamic_batching: {preferred_batch_size: [4], max_queue_delay_microseconds: 200000}`,
    `export const execute = (requests) => requests.map(({ batchSize }) => ({
      outputs: { Y: { data: Array(batchSize).fill(requests.length), shape: [batchSize, 1] } } }));`,
  );
  const faulty = `export async function execute(requests) {
      const what = requests[0].parameters.what;
      if (what === 'throw') throw new Error('no luck');
      if (what === 'exit') process.exit(3);
      if (what === 'hang') await new Promise(() => {});
      if (what === 'spin') for (;;);
      if (what === 'few') return [];
      if (what === 'text') return 'x';
      if (what === 'null') return null;
      if (what === 'error') return [{ error: 'not this one' }];
      if (what === 'less') return [{ outputs: {} }];
      if (what === 'name') return [{ outputs: { Z: { data: [1] } } }];
      if (what === 'shape') return [{ outputs: { Y: { data: [1, 2], shape: [1, 3] } } }];
      if (what === 'type') return [{ outputs: { Y: { data: new Float32Array(1), shape: [1, 1] } } }];
      if (what === 'twice') for (const r of requests) { r.send({ outputs: { Y: r.inputs.X } }); r.send({ outputs: { Y: r.inputs.X } }); }
      if (what === 'parameters') return [{ outputs: { Y: requests[0].inputs.X }, parameters: { f: () => {} } }];
      if (what === 'long') return [{ outputs: { Y: requests[0].inputs.X }, parameters: { a: 'x'.repeat(1e6) } }];
      if (what === 'detached') structuredClone(null, { transfer: [requests[0].inputs.X.data.buffer] });
      if (what === 'detached') return [{ outputs: { Y: { data: [1] } } }];
      if (what === 'nothing') return;
      return requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));
    }`;
  models.write('faulty', BATCHED, faulty);
  // A limit of its own: on a busy machine any batch may take longer than this.
  models.write('timed', `${BATCHED}parameters: {execute_timeout_ms: {string_value: "300"}}\n`, faulty);
  models.write(
    'counter',
    `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n`,
    `export async function execute(requests) {
      for (const request of requests) {
        for (const value of request.inputs.X.data) {
          request.send({ outputs: { Y: { data: [value] } } });
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
    }`,
  );
  models.write(
    'steps',
    `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n`,
    `export async function* execute(requests) {
      const longest = Math.max(...requests.map(({ inputs: { X } }) => X.data.length));
      for (let i = 0; i < longest; i++) {
        yield requests.map(({ inputs: { X } }) => {
          if (X.data[i] === -1) return { error: 'not this one' };
          return i < X.data.length ? { outputs: { Y: { data: [X.data[i]] } } } : undefined;
        });
        if (longest === 4) throw new Error('no luck');
        if (longest === 5) yield [];
      }
    }`,
  );
  models.write(
    'caller',
    BATCHED,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export const execute = (requests) => Promise.all(requests.map(async ({ inputs: { X }, parameters: { model } }) => {
      try {
        const { outputs } = await infer({ model, inputs: { X: { data: X.data, shape: X.shape } }, parameters: { model } });
        return { outputs: { Y: outputs.Y } };
      } catch (error) {
        return { error: 'the other said: ' + error.message };
      }
    }));`,
  );
  models.write(
    'adder',
    `${IO}max_batch_size: 0\n`,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export async function execute([{ inputs: { X } }]) {
      const inputs = { X: { data: X.data, shape: X.shape } };
      const { outputs, responses } = await infer({ model: 'counter', inputs, decoupled: true });
      const first = await infer({ model: 'counter', inputs });
      const sum = responses.reduce((total, { outputs: { Y } }) => total + Y.data[0], 0);
      return [{ outputs: { Y: { data: [sum, outputs.Y.data[0], first.outputs.Y.data[0], first.responses.length], shape: [4] } } }];
    }`,
  );
  for (const [name, maxBatchSize] of [
    ['reshaper', 0],
    ['reshaper-rows', 4],
  ] as const) {
    const first = maxBatchSize > 0 ? 'X.shape[0], ' : '';
    models.write(
      name,
      `input: [{name: X, data_type: TYPE_INT32, dims: [2, -1], reshape: {shape: [-1, 2]}}]
output: [{name: Y, data_type: TYPE_INT32, dims: [2, -1], reshape: {shape: [-1, 2]}}, {name: S, data_type: TYPE_INT32, dims: [-1]}]
max_batch_size: ${maxBatchSize}\n`,
      `export const execute = (requests) => requests.map(({ inputs: { X }, parameters: { wrong } }) => ({ outputs: {
        Y: wrong ? { data: X.data, shape: [${first}2, 3] } : X,
        S: { data: ${maxBatchSize > 0 ? 'Array(X.shape[0]).fill(X.shape).flat()' : 'X.shape'}, shape: [${first}X.shape.length] } } }));`,
    );
  }
  models.write(
    'endless',
    `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n`,
    `export async function* execute(requests) {
      for (let i = 1; ; i++) yield requests.map(() => ({ outputs: { Y: { data: [i] } } }));
    }`,
  );
  models.write(
    'sender',
    `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n`,
    `export async function execute([request]) {
      for (let i = 1; !request.isCancelled; i++) await request.send({ outputs: { Y: { data: [i] } } });
    }`,
  );
  models.write(
    'late',
    `${IO}max_batch_size: 0\ninstance_group: [{count: 4}]\n`,
    `
    export async function execute([{ inputs: { X } }]) {
      await new Promise((resolve) => setTimeout(resolve, X.data[1]));
      return [{ outputs: { Y: X } }];
    }`,
  );
  models.write(
    'asker',
    `${IO}max_batch_size: 0\n`,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export async function execute([{ inputs: { X }, parameters: { what, model } }]) {
      const ask = (more) => infer({ model, inputs: { X: { data: X.data, shape: X.shape } }, ...more });
      if (what === 'all') await ask({ decoupled: true });
      const answer = ask({});
      if (what === 'exit') {
        await new Promise((resolve) => setTimeout(resolve, 50));
        process.exit(3);
      }
      if (what === 'leave') {
        answer.catch(() => {});
        return [{ outputs: { Y: X } }];
      }
      if (what === 'many') {
        const many = await Promise.allSettled(Array.from({ length: 2000 }, () => ask({})));
        return [{ outputs: { Y: { data: [many.filter(({ status }) => status === 'rejected').length], shape: [1] } } }];
      }
      const { outputs } = await answer;
      return [{ outputs: { Y: { data: outputs.Y.data, shape: outputs.Y.shape } } }];
    }`,
  );
  models.write(
    'deep',
    `${BATCHED}instance_group: [{count: 2}]\n`,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export const execute = (requests) => Promise.all(requests.map(async ({ inputs: { X } }) => {
      const [depth] = X.data;
      if (depth === 0) return { outputs: { Y: { data: [0] } } };
      try {
        const { outputs } = await infer({ model: 'deep', inputs: { X: { data: Int32Array.of(depth - 1), shape: [1, 1] } } });
        return { outputs: { Y: { data: [outputs.Y.data[0] + 1] } } };
      } catch (error) {
        return { error: error.message };
      }
    }));`,
  );
  for (const [name, other] of [
    ['ping', 'pong'],
    ['pong', 'ping'],
  ] as const) {
    models.write(
      name,
      BATCHED,
      `let infer;
      export function initialize(setup) { infer = setup.infer; }
      export async function execute([{ inputs: { X } }]) {
        const [depth] = X.data;
        if (depth === 0) return [{ outputs: { Y: { data: [0] } } }];
        await new Promise((resolve) => setTimeout(resolve, 50));
        const inputs = { X: { data: Int32Array.of(depth - 1), shape: [1, 1] } };
        try {
          const { outputs } = await infer({ model: '${other}', inputs });
          return [{ outputs: { Y: { data: [outputs.Y.data[0] + 1] } } }];
        } catch (error) {
          return [{ error: error.message }];
        }
      }`,
    );
  }
  models.write(
    'pair',
    `${BATCHED}instance_group: [{count: 2}]\n`,
    `import { threadId } from 'node:worker_threads';
    export async function execute(requests) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return requests.map(({ batchSize }) => ({ outputs: { Y: { data: Array(batchSize).fill(threadId) } } }));
    }`,
  );
  models.write(
    'apart',
    `${BATCHED}parameters: {instance_kind: {string_value: process}}\n`,
    `
    export const execute = (requests) => requests.map(({ batchSize }) => ({ outputs: { Y: { data: Array(batchSize).fill(process.pid) } } }));`,
  );
  models.write(
    'ordered',
    `${BATCHED}instance_group: [{count: 2}]\ndynamic_batching: {preserve_ordering: true, preferred_batch_size: [1]}\n`,
    `
    export async function execute(requests) {
      await new Promise((resolve) => setTimeout(resolve, requests[0].inputs.X.data[0]));
      return requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));
    }`,
  );
  models.write(
    'slow',
    `${BATCHED}dynamic_batching: {default_queue_policy: {max_queue_size: 2, allow_timeout_override: true}}\n`,
    `
    import { existsSync } from 'node:fs';
    export async function execute(requests) {
      const { gate } = requests[0].parameters;
      while (gate && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
      return requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));
    }`,
  );
  const gated = (answer: string) => `
    import { existsSync } from 'node:fs';
    export async function execute(requests) {
      const { gate } = requests[0].parameters;
      while (gate && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
      return requests.map(({ inputs: { X } }) => ({ outputs: { Y: ${answer} } }));
    }`;
  models.write('gated', `${BATCHED}instance_group: [{count: 2}]\n`, gated('X'));
  models.write(
    'levels',
    `${BATCHED}dynamic_batching: {priority_levels: 2, default_priority_level: 2}\n`,
    gated('{ data: [requests.length] }'),
  );
  models.write('trio', `${BATCHED}instance_group: [{count: 3}]\n`, gated('X'));
  models.write(
    'hard',
    `${IO}max_batch_size: 3\ndynamic_batching: {preferred_batch_size: [3], max_queue_delay_microseconds: 9007199254740991}\n`,
    gated('{ data: [requests.length] }'),
  );
  const present = join(models.folder, 'present');
  models.write(
    'meeting',
    `${BATCHED}instance_group: [{count: 2}]\n`,
    `import { existsSync, writeFileSync } from 'node:fs';
    export async function execute([{ inputs: { X } }]) {
      const [own, other] = X.data[0] === 0 ? ['-0', '-1'] : ['-1', '-0'];
      writeFileSync('${present}' + own, '');
      while (!existsSync('${present}' + other)) await new Promise((resolve) => setTimeout(resolve, 2));
      return [{ outputs: { Y: { data: [7] } } }];
    }`,
  );
  models.write(
    'both',
    BATCHED,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export async function execute([request]) {
      const ask = (value) => infer({ model: 'meeting', inputs: { X: { data: Int32Array.of(value), shape: [1, 1] } } });
      const [one, other] = await Promise.all([ask(0), ask(1)]);
      return [{ outputs: { Y: { data: [one.outputs.Y.data[0] + other.outputs.Y.data[0]] } } }];
    }`,
  );
  await models.open();
});
afterAll(() => models.close());

describe('a model in JavaScript', () => {
  it.each([
    ['reshaper', [2, 3], [3, 2]],
    ['reshaper-rows', [1, 2, 3], [1, 3, 2]],
  ] as const)('has the shapes of reshape, and its clients those of dims: %s', async (model, dims, own) => {
    const x = { ...int32('X', [[1, 2, 3, 4, 5, 6]]), shape: [...dims] };
    const [answer] = await models.infer(model, [x]);
    const [y, shape] = answer!.outputs;
    expect([y!.shape, numbersOf(y!)]).toEqual([[...dims], [1, 2, 3, 4, 5, 6]]);
    expect(numbersOf(shape!)).toEqual([...own]);
    await expect(models.infer(model, [x], { parameters: { wrong: true } })).rejects.toThrow(
      /gave a wrong answer: output 'Y' has the shape \[(1,)?2,3\]; \[(1,)?-1,2\] is expected/,
    );
  });

  it('is handed the parameters of requests', () => {
    expect(models.repository.find('echo', '').ignoresParameters).toBe(false);
  });

  it('answers a request of several rows', async () => {
    expect(
      await models.numbers('echo', [
        [1, 2],
        [3, 4],
      ]),
    ).toEqual([1, 2, 3, 4]);
  });

  it('gets requests together, as the batcher puts them', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => models.numbers('sizes', [[7]])));
    expect(answers).toEqual([[4], [4], [4], [4]]);
    expect(await models.numbers('sizes', [[7]])).toEqual([1]); // once its delay is over
    const { execution_count, inference_count, batch_stats, inference_stats } = models.repository
      .find('sizes', '')
      .statistics();
    expect([execution_count, inference_count, inference_stats.success.count]).toEqual([2, 5, 5]);
    expect(batch_stats.map(({ batch_size, compute_infer }) => [batch_size, compute_infer.count])).toEqual([
      [1, 1],
      [4, 1],
    ]);
  });

  it('gives any number of answers where it is decoupled', async () => {
    const x = { ...int32('X', [[5, 6, 7]]), shape: [3] };
    const answers = await models.infer('counter', [x]);
    expect(answers.map(({ outputs }) => numbersOf(outputs[0]!))).toEqual([[5], [6], [7]]);
    expect(await models.infer('counter', [{ ...x, shape: [0], data: new Uint8Array(0) }])).toEqual([]);
  });

  it('may be a generator, each step of which is sent at once', async () => {
    const ask = (...numbers: number[]) =>
      models.infer('steps', [{ ...int32('X', [numbers]), shape: [numbers.length] }]);
    const answers = await ask(5, 6, 7);
    expect(answers.map(({ outputs }) => numbersOf(outputs[0]!))).toEqual([[5], [6], [7]]);
    await expect(ask(5, -1, 7)).rejects.toThrow('not this one');
    await expect(ask(1, 2, 3, 4)).rejects.toThrow(
      "the model 'steps' failed: execute threw at model.mjs:8:34: no luck",
    );
    await expect(ask(1, 2, 3, 4, 5)).rejects.toThrow('execute yielded 0 responses to 1 requests');
  });

  it('runs in as many instances as its group has', async () => {
    const answers = await Promise.all([1, 2].map(() => models.numbers('pair', [[1]])));
    expect(new Set(answers.flat()).size).toBe(2);
  });

  it('runs in a process where it is to', async () => {
    const [pid] = await models.numbers('apart', [[1]]);
    expect(pid).not.toBe(process.pid);
    process.kill(pid!, 'SIGKILL');
    await expect.poll(async () => models.numbers('apart', [[1]]).catch(() => [pid])).not.toEqual([pid]);
  });

  it('answers in the order of requests where that is preserved', async () => {
    const order: number[] = [];
    await Promise.all(
      [120, 1, 60].map(async (ms) => {
        await models.numbers('ordered', [[ms]]);
        order.push(ms);
      }),
    );
    expect(order).toEqual([120, 1, 60]);
  });
});

describe('what a model does wrong', () => {
  const asked = (what: string, model = 'faulty') => models.numbers(model, [[1]], { parameters: { what } });

  it.each([
    ['throw', "the model 'faulty' failed: execute threw at model.mjs:3:35: no luck"],
    ['few', "the model 'faulty' failed: execute returned 0 responses to 1 requests"],
    ['text', "the model 'faulty' failed: execute returned no list of responses"],
    ['null', "the model 'faulty' failed: execute returned no list of responses"],
    ['error', 'not this one'],
    ['less', "output 'Y' was asked for and is not in it"],
    ['name', "gave a wrong answer: 'Z' is no output of the model"],
    ['shape', "output 'Y' has 8 bytes; its shape takes 12"],
    ['type', "'Y' is a Float32Array; Int32Array is expected for INT32"],
    ['parameters', "the parameter 'f' is of type function"],
    ['long', 'the parameters have 1000001 characters; at most 65536 are taken'],
    ['nothing', "the model 'faulty' gave no answer to a request"],
    ['twice', "the model 'faulty' gave a second answer to a request"],
    ['exit', "the model 'faulty' failed: "],
  ])('is its requests own error: %s', async (what, message) => {
    await expect(asked(what)).rejects.toThrow(message);
    await expect.poll(() => asked('nothing else').catch(() => null)).toEqual([1]);
  });

  it.each(['hang', 'spin'])('is its requests own error where it never ends: %s', async (what) => {
    await expect(asked(what, 'timed')).rejects.toThrow(
      'took longer over a batch than the 300 ms that it may',
    );
    await expect.poll(() => asked('', 'timed').catch(() => null)).toEqual([1]);
  });

  it('is none where it hands the memory of its inputs on', async () => {
    expect(await asked('detached')).toEqual([1]);
    expect(await asked('')).toEqual([1]);
  });

  it('hurts nobody beside it', async () => {
    const [wrong, ...right] = await Promise.allSettled([
      asked('exit'),
      models.numbers('echo', [[1]]),
      models.numbers('echo', [[2]]),
    ]);
    expect(wrong.status).toBe('rejected');
    expect(right).toEqual([
      { status: 'fulfilled', value: [1] },
      { status: 'fulfilled', value: [2] },
    ]);
    await expect.poll(() => asked('').catch(() => null)).toEqual([1]);
  });
});

describe('what a model asks of others', () => {
  const call = (model: string) => models.numbers('caller', [[3]], { parameters: { model } });

  it('is answered as a client is', async () => {
    expect(await call('echo')).toEqual([3]);
    await expect(call('nobody')).rejects.toThrow(
      "the other said: Request for unknown model: 'nobody' is not found",
    );
  });

  it('is answered with the first answer of a decoupled model, or with all of them', async () => {
    const [answer] = await models.infer('adder', [{ ...int32('X', [[5, 6, 7]]), shape: [3] }]);
    expect(numbersOf(answer!.outputs[0]!)).toEqual([18, 5, 5, 1]);
  });

  it('may be several things at once', async () => {
    const asked = models.numbers('both', [[7]]);
    const activity = () => models.repository.find('meeting', '').activity().running;
    // Each of the two ends once the other one runs too.
    expect(await asked).toEqual([14]);
    expect(activity()).toBe(0);
  });

  it('is refused before the model is loaded', async () => {
    const code =
      "export const initialize = ({ infer }) => infer({ model: 'echo', inputs: {} }); export const execute = () => [];";
    models.write('early', BATCHED, code);
    await expect(models.repository.load('early')).rejects.toThrow(
      'other models can be asked once the instance is loaded: in execute',
    );
  });

  it('may not be for itself where every instance waits for that', async () => {
    await expect(call('caller')).rejects.toThrow(
      "the model 'caller' cannot be asked: its one instance waits for answers which wait for this one",
    );
  });
});

describe('what a model has asked of others', () => {
  const ask = async (values: number[], what: string, model: string) => {
    const x = { ...int32('X', [values]), shape: [values.length] };
    const [answer] = await models.infer('asker', [x], { parameters: { what, model } });
    return numbersOf(answer!.outputs[0]!);
  };

  it('is not answered to the worker that follows the one that asked', async () => {
    await expect(ask([1, 1200], 'exit', 'late')).rejects.toThrow("the model 'asker' failed");
    const { instances } = await vi.waitUntil(
      () => [models.repository.find('asker', '').activity()].find(({ instances }) => instances[0] === 'idle'),
      { timeout: 120_000 },
    );
    expect(instances).toEqual(['idle']);
    // The first call of the new worker, which waits when the answer to the first call of the old one would come.
    expect(await ask([3, 2000], '', 'late')).toEqual([3, 2000]);
  });

  it('is answered with the first of endless answers, and the other model is free again', async () => {
    for (const model of ['endless', 'sender', 'endless', 'sender']) {
      expect(await ask([1], '', model)).toEqual([1]);
    }
  });

  it('is cancelled when it is too much, or when the batch that asked is over', async () => {
    for (const model of ['endless', 'sender']) {
      await expect(ask([1], 'all', model)).rejects.toThrow('gives more than 10,000 answers or 64 MiB');
      expect(await ask([5], 'leave', model)).toEqual([5]);
      await expect(ask([1], 'exit', model)).rejects.toThrow("the model 'asker' failed");
      await expect.poll(() => ask([1], '', model).catch(() => null)).toEqual([1]);
    }
    const running = () =>
      ['endless', 'sender'].map((name) => models.repository.find(name, '').activity().running);
    await expect.poll(running).toEqual([0, 0]);
  });

  it('is bounded in number', async () => {
    expect(await ask([1, 0], 'many', 'late')).toEqual([1001]);
  });
});

describe('a model of two instances that asks itself', () => {
  const deep = (depth: number) => models.numbers('deep', [[depth]]).catch((error: Error) => error.message);

  it('is answered while an instance is left, and refused where none is', async () => {
    expect(await deep(1)).toEqual([1]);
    expect(await deep(2)).toContain('all of its 2 instances wait');
  });

  it('never waits for ever, however many ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => deep(i % 3)));
    expect(answers.filter((_, i) => i % 3 === 0)).toEqual(Array(14).fill([0]));
    for (const answer of answers) {
      if (typeof answer === 'string') expect(answer).toContain('all of its 2 instances wait');
    }
  });
});

describe('two models of one instance that ask each other', () => {
  const ask = (model: string, depth: number) =>
    models.numbers(model, [[depth]]).catch((error: Error) => error.message);
  const refused = (model: string) =>
    `the model '${model}' cannot be asked: its one instance waits for answers which wait for this one`;

  it('are answered where the other one does not ask back', async () => {
    expect(await ask('ping', 1)).toEqual([1]);
    expect(await ask('ping', 2)).toBe(refused('ping'));
  });

  it('never wait for ever, whoever begins', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => ask(i % 2 === 0 ? 'ping' : 'pong', 1)),
    );
    for (const answer of answers) expect([[1], refused('ping'), refused('pong')]).toContainEqual(answer);
    expect(answers).toContainEqual([1]);
  });
});

describe('a request', () => {
  it.each([
    [
      [{ ...int32('X', [[1]]), datatype: 'FP32' as const }],
      "data-type is 'FP32', but model 'echo' expects 'INT32'",
    ],
    [
      [{ ...int32('X', [[1]]), shape: [1] }],
      "unexpected shape for input 'X' for model 'echo'. Expected [-1,-1], got [1]",
    ],
    [[int32('Z', [[1]])], /^unexpected inference input 'Z' for model 'echo'; its inputs are 'X'$/],
    [
      [],
      "expected 1 inputs but got 0 inputs for model 'echo'. Got input(s) [], but missing required input(s) ['X']",
    ],
    [[int32('X', [[1]]), int32('X', [[1]])], "input 'X' already exists in request"],
    [
      [
        int32(
          'X',
          Array.from({ length: 9 }, () => [1]),
        ),
      ],
      "batch-size must be <= 8 for 'echo'",
    ],
    [[{ ...int32('X', [[1]]), shape: [1, 2] }], 'Expected 8, got 4'],
    [
      [{ ...int32('X', [[1]]), shape: [0, 1], data: new Uint8Array(0) }],
      "inference request batch-size must be >= 1 for 'echo': input 'X' has a batch of 0 rows",
    ],
  ])('that does not fit the configuration is refused: %#', async (inputs, message) => {
    await expect(models.infer('echo', inputs)).rejects.toThrow(message);
  });

  it('for an output that there is not is told which there are', async () => {
    await expect(models.infer('echo', [int32('X', [[1]])], { outputs: ['Z'] })).rejects.toThrow(
      "unexpected inference output 'Z' for model 'echo'; its outputs are 'Y'",
    );
  });

  it('is refused where the queue is full or its time in it is over, and leaves it with its client', async () => {
    const gone = new AbortController();
    const parameters = { gate: join(models.folder, 'gate') };
    const slow = models.repository.find('slow', '');
    const first = models.numbers('slow', [[1]], { parameters });
    await expect.poll(() => slow.activity().running).toBe(1);
    const second = models.numbers('slow', [[2]], { parameters });
    const left = models.numbers('slow', [[4]], { signal: gone.signal });
    await expect.poll(() => slow.activity().waiting).toBe(2);
    await expect(models.numbers('slow', [[5]])).rejects.toThrow('Exceeds maximum queue size');
    gone.abort();
    await expect(left).rejects.toThrow(/abort/i);
    await expect(models.numbers('slow', [[3]], { timeoutUs: 1000 })).rejects.toThrow(
      'Request timeout expired',
    );
    writeFileSync(parameters.gate, '');
    expect(await Promise.all([first, second])).toEqual([[1], [2]]);
    expect(slow.failures()).toMatchObject({ REJECTED: 2, CANCELED: 1 });
  });
});

describe('instances', () => {
  it('run as many requests at once as there are, and the next one waits', async () => {
    const gates = [0, 1, 2, 3].map((i) => join(models.folder, `trio-${i}`));
    const ends: number[] = [];
    const asked = gates.map((gate, i) =>
      models.numbers('trio', [[i]], { parameters: { gate } }).then(() => ends.push(i)),
    );
    const activity = () => models.repository.find('trio', '').activity();
    await expect
      .poll(activity)
      .toMatchObject({ running: 3, waiting: 1, instances: ['busy', 'busy', 'busy'] });
    writeFileSync(gates[3]!, '');
    writeFileSync(gates[1]!, '');
    await expect.poll(() => ends).toEqual([1, 3]);
    for (const gate of gates) writeFileSync(gate, '');
    await Promise.all(asked);
  });

  it('wait with a batch until it is full, however long that takes, where its delay has no end', async () => {
    const model = models.repository.find('hard', '');
    const [first, second] = [models.numbers('hard', [[1]]), models.numbers('hard', [[2]])];
    await expect.poll(() => model.activity().waiting).toBe(2);
    for (let i = 0; i < 20; i++) await nextTurn();
    expect(model.activity()).toMatchObject({ waiting: 2, running: 0 });
    expect(await Promise.all([first, second, models.numbers('hard', [[3]])])).toEqual([[3], [3], [3]]);
  });
});

describe('a request behind one that takes long', () => {
  /** So that batches are sent ahead. */
  async function warm(model: string) {
    for (let i = 0; i < 20; i++)
      await Promise.all([models.numbers(model, [[1]]), models.numbers(model, [[2]])]);
  }

  it('runs on the instance that is free first', async () => {
    await warm('gated');
    const gates = ['gate-0', 'gate-1'].map((name) => join(models.folder, name));
    const held = gates.map((gate) => models.numbers('gated', [[1]], { parameters: { gate } }));
    await nextTurn();
    const third = models.numbers('gated', [[3]]);
    await expect.poll(() => models.repository.find('gated', '').activity().running).toBeGreaterThanOrEqual(2);
    writeFileSync(gates[1]!, '');
    expect(await third).toEqual([3]);
    writeFileSync(gates[0]!, '');
    expect(await Promise.all(held)).toEqual([[1], [1]]);
  });

  it('shares its batch with who comes later, may be overtaken, and has waited in the queue', async () => {
    await warm('levels');
    const before = models.repository.find('levels', '').statistics();
    const gate = join(models.folder, 'gate-2');
    const order: number[] = [];
    const ask = (value: number, options: object) =>
      models.numbers('levels', [[value]], options).then(([rows]) => order.push(value, rows!));
    const first = ask(1, { parameters: { gate } });
    await nextTurn();
    const others = [ask(2, { priority: 2 })];
    const startMs = performance.now();
    await expect.poll(() => performance.now() - startMs).toBeGreaterThan(60);
    others.push(ask(3, { priority: 2 }), ask(4, { priority: 1 }));
    await nextTurn();
    const waitedNs = 1e6 * (performance.now() - startMs);
    writeFileSync(gate, '');
    await Promise.all([first, ...others]);
    expect(order).toEqual([1, 1, 4, 3, 2, 3, 3, 3]);
    const { queue } = models.repository.find('levels', '').statistics().inference_stats;
    expect(Number(queue.ns - before.inference_stats.queue.ns)).toBeGreaterThan(waitedNs);
  });
});

describe('an unload', () => {
  it('ends a model whose code never answers, and frees its name', async () => {
    const waits = 'setInterval(() => {}, 1e9); export const execute = () => new Promise(() => {});';
    models.write('stuck', BATCHED, waits);
    await models.repository.load('stuck');
    const asked = models.numbers('stuck', [[1]]).catch((error: Error) => error.message);
    await models.repository.unload('stuck');
    expect(await asked).toBe("The model 'stuck' was closed.");
    models.write('stuck', BATCHED, `export const ${echo}`);
    await models.repository.load('stuck');
    expect(await models.numbers('stuck', [[1]])).toEqual([1]);
  });
});

describe('a model that takes too long to start', () => {
  const never = (loops: boolean) =>
    `export ${loops ? '' : 'async '}function initialize() { ${loops ? 'for (;;);' : 'await new Promise((resolve) => setTimeout(resolve, 1e9));'} }\nexport const ${echo}`;
  const limited = `${BATCHED}parameters: {initialize_timeout_ms: {string_value: "200"}}\n`;

  it.each([false, true])('fails, and frees its name (in a loop: %s)', async (loops) => {
    models.write('late', limited, never(loops));
    await expect(models.repository.load('late')).rejects.toThrow(
      "failed to load 'late', its instances took longer to start than the 200 ms of initialize_timeout_ms",
    );
    models.write('late', `${BATCHED}instance_group: [{count: 2}]`, `export const ${echo}`);
    await models.repository.load('late');
    expect(await models.numbers('late', [[1]])).toEqual([1]);
    await models.repository.unload('late');
  });

  it('does not keep a server from ending', async () => {
    const others = new ModuleModels();
    others.write('never', BATCHED, never(true));
    await others.open('explicit', []);
    const loading = others.repository.load('never').catch((error: Error) => error.message);
    await expect.poll(() => others.repository.rows()[0]?.state).toBe('LOADING');
    await others.close();
    expect(await loading).toContain('The server is shutting down.');
  });
});

describe('a reload', () => {
  it('serves the new files, and keeps the old ones where those are broken', async () => {
    models.write('changes', BATCHED, `export const ${echo}`);
    expect(await models.repository.load('changes')).toBe('changes');
    models.write('changes', BATCHED, 'export const execute = 5;', '2');
    await expect(models.repository.load('changes')).rejects.toThrow("exports no function 'execute'");
    expect(await models.numbers('changes', [[1]])).toEqual([1]);
    models.write('changes', BATCHED, "throw new Error('not today');", '2');
    await expect(models.repository.load('changes')).rejects.toThrow('not today');
    models.write(
      'changes',
      BATCHED,
      'export const execute = (requests) => requests.map(() => ({ outputs: { Y: { data: [42] } } }));',
      '2',
    );
    await models.repository.load('changes');
    expect(await models.numbers('changes', [[1]])).toEqual([42]);
    expect(models.repository.find('changes', '').version).toBe('2');
  });

  it('takes a configuration and files of a client', async () => {
    const code =
      'export const execute = (requests) => requests.map(() => ({ outputs: { Y: { data: [9] } } }));';
    const config = JSON.stringify({
      backend: 'module',
      max_batch_size: 2,
      input: [{ name: 'X', data_type: 'TYPE_INT32', dims: [-1] }],
      output: [{ name: 'Y', data_type: 'TYPE_INT32', dims: [-1] }],
      parameters: { execute_timeout_ms: 5000 },
    });
    await models.repository.load('echo', { config, files: new Map([['7/model.mjs', Buffer.from(code)]]) });
    expect(await models.numbers('echo', [[1]])).toEqual([9]);
    expect(models.repository.find('echo', '').version).toBe('7');
    await models.repository.load('echo');
    expect(await models.numbers('echo', [[1]])).toEqual([1]);
  });
});
