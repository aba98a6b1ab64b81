import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { int32, ModuleModels, numbersOf } from '../../../src/serving/support/module-models.js';

const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';
const PLAIN = `${IO}max_batch_size: 8\n`;
const ECHO =
  'export const execute = (requests) => requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));';
/** Characters of an error that a client may get: a message and its sentence. */
const MAX_CHARACTERS = 6000;
const LONG = 1_000_000;

const FAULTS = `
import { fail } from './lib/deep folder/fails.mjs';
const what = {
  throws: () => { throw new Error('no luck'); },
  library: () => fail('from below'),
  long: () => { throw new Error('x'.repeat(${LONG})); },
  longError: () => [new Error('x'.repeat(${LONG}))],
  longText: () => [{ error: 'x'.repeat(${LONG}) }],
  longName: () => [{ outputs: { ['x'.repeat(${LONG})]: { data: [1] } } }],
  longStack: () => { throw Object.assign(new Error('short'), { stack: 'x'.repeat(${LONG}) }); },
  longCause: () => { throw new Error('the last', { cause: new Error('x'.repeat(${LONG}), { cause: 'y'.repeat(${LONG}) }) }); },
  cycle: () => { const error = new Error('round'); error.cause = error; throw error; },
  text: () => { throw 'x'.repeat(${LONG}); },
  symbol: () => { throw Symbol('sign'); },
  object: () => { throw { reason: 'z'.repeat(${LONG}) }; },
  nothing: () => { throw undefined; },
  hostile: () => { throw { toString() { throw new Error('no text'); }, get message() { throw new Error('no message'); } }; },
  hostileError: () => { throw Object.defineProperty(new Error(''), 'message', { get() { throw new Error('no message'); } }); },
  proxy: () => { throw new Proxy({}, { get() { throw new Error('no property'); }, getPrototypeOf() { throw new Error('none'); } }); },
  path: () => { throw new Error('no file ' + import.meta.url + ' ' + import.meta.dirname + '/weights.bin'); },
  never: () => new Promise(() => {}),
  unref: () => new Promise((resolve) => setTimeout(() => resolve([{ outputs: { Y: { data: [5] } } }]), 20).unref()),
  uncaught: () => { setTimeout(() => { throw new Error('x'.repeat(${LONG})); }); return new Promise((resolve) => setTimeout(resolve, 1e9)); },
  rejected: () => { Promise.reject({ reason: 'x'.repeat(${LONG}) }); return new Promise((resolve) => setTimeout(resolve, 1e9)); },
};
export const execute = async (requests) => what[requests[0].parameters.what]?.() ?? requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));
`;

const LIBRARY = 'export function fail(text) {\n  throw new Error(text);\n}\n';

const KINDS = ['thread', 'process'] as const;
const models = new ModuleModels();
const writeFaults = (name: string, config: string) => {
  models.write(name, config, FAULTS);
  mkdirSync(join(models.folder, name, '1/lib/deep folder'), { recursive: true });
  writeFileSync(join(models.folder, name, '1/lib/deep folder/fails.mjs'), LIBRARY);
};

beforeAll(async () => {
  for (const kind of KINDS) {
    const where = `parameters: {instance_kind: {string_value: ${kind}}}\n`;
    writeFaults(`faults-${kind}`, PLAIN + where);
    models.write(
      `crowd-${kind}`,
      `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n${where}`,
      `export async function execute([request]) {
        const { inputs: { X: { data: [count, size] } }, parameters: { waits } } = request;
        const answer = { outputs: { Y: { data: new Int32Array(size) } } };
        for (let i = 0; i < count; i++) {
          answer.outputs.Y.data[0] = i;
          if (waits) await request.send(answer);
          else request.send(answer);
        }
      }`,
    );
    models.write(
      `steps-${kind}`,
      `${IO}max_batch_size: 0\nmodel_transaction_policy: {decoupled: true}\n${where}`,
      `export async function* execute([{ inputs: { X: { data: [count] } } }]) {
        for (let i = 0; i < count; i++) yield [{ outputs: { Y: { data: [i] } } }];
      }`,
    );
  }
  await models.open();
});
afterAll(() => models.close());

const answersOf = async (model: string, numbers: number[], parameters = {}) => {
  const x = { ...int32('X', [numbers]), shape: [numbers.length] };
  const responses = await models.infer(model, [x], { parameters });
  return responses.map(({ outputs }) => numbersOf(outputs[0]!)[0]);
};

describe.each(KINDS)('an error of code in a %s', (kind) => {
  const failed = (what: string): Promise<Error> =>
    models
      .numbers(`faults-${kind}`, [[1]], { parameters: { what } })
      .then(([y]) => new Error(`answered ${y}`))
      .catch((error) => error);
  const runsAgain = () => expect.poll(async () => (await failed('')).message).toBe('answered 1');

  it.each([
    ['throws', 'execute threw at model.mjs:4:25: no luck'],
    ['library', 'execute threw at lib/deep folder/fails.mjs:2:9: from below'],
    ['longStack', 'execute threw: short'],
    ['longCause', 'the last'],
    ['cycle', 'round'],
    ['symbol', 'execute threw: Symbol(sign)'],
    ['nothing', 'execute threw: undefined'],
    ['hostile', 'execute threw: '],
    ['hostileError', 'execute threw'],
    ['proxy', 'execute threw: '],
    ['object', "reason: 'zzz"],
    ['path', 'no file model.mjs weights.bin'],
  ])('says what and where, and hurts nobody: %s', async (what, message) => {
    const { message: told } = await failed(what);
    expect(told).toContain(`the model 'faults-${kind}' failed: `);
    expect(told).toContain(message);
    expect(told.length).toBeLessThan(MAX_CHARACTERS);
    expect(told).not.toContain(models.folder);
    expect((await failed('')).message).toBe('answered 1');
  });

  it.each(['long', 'longError', 'longText', 'longName', 'text'])('is cut, and says so: %s', async (what) => {
    const { message } = await failed(what);
    expect(message.length).toBeLessThan(MAX_CHARACTERS);
    expect(message).toMatch(/more characters left out\)/);
    expect((await failed('')).message).toBe('answered 1');
  });

  it.each(['uncaught', 'rejected'])('is cut where nothing catches it: %s', async (what) => {
    const { message } = await failed(what);
    expect(message).toContain(`the model 'faults-${kind}' failed: uncaught error`);
    if (what === 'uncaught') expect(message).toContain('uncaught error at model.mjs:23:46: ');
    expect(message.length).toBeLessThan(MAX_CHARACTERS);
    await runsAgain();
  });

  it('is that of a promise that nothing can settle any more, and the instance goes on', async () => {
    expect((await failed('never')).message).toContain(
      'failed: execute never finished: its promise was not settled, and nothing was left to wait for',
    );
    expect((await failed('unref')).message).toBe('answered 5');
    expect((await failed('')).message).toBe('answered 1');
  });

  it('is in the log with its stack and its causes, within bounds', async () => {
    // An instance reports one error a second.
    const cause = () => models.errors.find(({ stack = '' }) => stack.includes('caused by'));
    await expect.poll(async () => (await failed('longCause')) && cause(), { interval: 200 }).toBeDefined();
    expect(cause()!.stack).toContain('model.mjs:');
    for (const { message, stack = '' } of models.errors) {
      expect(message.length).toBeLessThan(MAX_CHARACTERS);
      expect(stack.length).toBeLessThan(70_000);
    }
  });
});

describe('a module that writes to the port of its thread', () => {
  const code = `import { workerData } from 'node:worker_threads';
const sent = [null, 5, {}, { type: 5 }, { type: 'done' }, { type: 'answers' }, { type: 'call', asked: 5 }];
export const execute = (requests) => {
  const i = requests[0].inputs.X.data[0];
  workerData.port.postMessage(sent[i]);
  return requests.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));
};`;

  it('hurts its own requests at most', async () => {
    models.write('rude', `${PLAIN}parameters: {instance_kind: {string_value: thread}}\n`, code);
    await models.repository.load('rude');
    const ask = (i: number) =>
      models.numbers('rude', [[i]]).then(
        ([y]) => `answered ${y}`,
        (error: Error) => error.message,
      );
    for (const i of [0, 1, 2, 3, 4, 5, 6]) {
      const told = await ask(i);
      if (i < 4 || told.startsWith('answered')) expect(told).toBe(`answered ${i}`);
      else expect(told).toContain("the model 'rude' failed: ");
      await expect.poll(() => ask(0)).toBe('answered 0');
    }
  });
});

describe.each(KINDS)('a module that cannot be loaded in a %s', (kind) => {
  const where = `parameters: {instance_kind: {string_value: ${kind}}}\n`;
  const problemOf = async (code: string, name = 'broken'): Promise<string> => {
    models.write(name, PLAIN + where, code);
    return models.repository.load(name).then(
      () => 'it was loaded',
      (error) => error.message,
    );
  };

  it('does not run once more to tell where it cannot be read', async () => {
    const code = `${ECHO}\nimport { appendFileSync } from 'node:fs';\nappendFileSync(new URL('ran', import.meta.url), 'x');\nawait import('./bad.mjs');`;
    const name = `once-${kind}`;
    mkdirSync(join(models.folder, name, '1'), { recursive: true });
    writeFileSync(join(models.folder, name, '1/bad.mjs'), 'export const b = ;\n');
    expect(await problemOf(code, name)).toContain("Unexpected token ';'");
    expect(readFileSync(join(models.folder, name, '1/ran'), 'utf8')).toBe('x');
  });

  it.concurrent.each([
    ['a throw', "\n  throw new Error('not today');", 'cannot be loaded: error at model.mjs:2:9: not today'],
    ['a syntax error', 'const a = 1;\nexport const b = ;', "error at model.mjs:2:18: Unexpected token ';'"],
    ['an import of nothing', "import { nope } from 'node:fs';", 'error at model.mjs:1: '],
    ['a missing file', "import './gone.mjs';", "Cannot find module 'gone.mjs' imported from model.mjs"],
    ['no end', 'await new Promise(() => {});', 'the top level of model.mjs never finished: its promise'],
    [
      'initialize',
      `${ECHO}\nexport const initialize = () => null.x;`,
      'initialize threw at model.mjs:2:38: ',
    ],
    ['long', `throw new Error('x'.repeat(${LONG}));`, 'more characters left out'],
    [
      'never',
      `${ECHO}\nexport const initialize = () => new Promise(() => {});`,
      'initialize never finished: its promise',
    ],
    ['no function', 'export const execute = 5;', "model.mjs exports no function 'execute'"],
  ])('says what and where: %s', async (name, code, message) => {
    const told = await problemOf(code, `broken-${name.replaceAll(' ', '-')}`);
    expect(told).toContain(message);
    expect(told).not.toContain(models.folder);
    expect(told.length).toBeLessThan(MAX_CHARACTERS);
  });

  it('names the file that cannot be read among those that it imports', async () => {
    const name = 'imports';
    mkdirSync(join(models.folder, name, '1/lib'), { recursive: true });
    writeFileSync(join(models.folder, name, '1/lib/part.mjs'), '\n\nexport const x = {;\n');
    expect(await problemOf(`import './lib/part.mjs';\n${ECHO}`, name)).toContain(
      'error at lib/part.mjs:3:19: ',
    );
  });

  it('tells the log of what finalize throws', async () => {
    const name = `last-${kind}`;
    expect(
      await problemOf(`${ECHO}\nexport const finalize = () => { throw new Error('no end'); };`, name),
    ).toBe('it was loaded');
    await models.repository.unload(name);
    const told = () =>
      models.errors.some(({ message }) => message.includes('finalize threw at model.mjs:2:39: no end'));
    await expect.poll(told).toBe(true);
  });
});

describe.each(KINDS)('many answers of a decoupled model in a %s', (kind) => {
  it('come one and all, in order, where it waits for room', async () => {
    const count = 12_000;
    const numbers = await answersOf(`crowd-${kind}`, [count, 1], { waits: true });
    expect(numbers).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it('come one and all where it is a generator', async () => {
    expect(await answersOf(`steps-${kind}`, [12_000])).toEqual(Array.from({ length: 12_000 }, (_, i) => i));
  });

  it.each([
    [30_000, 1],
    [100, 2 ** 18],
  ])(
    'are an error of their request beyond a bound where it does not wait: %s of %s numbers',
    async (count, size) => {
      const others = Array.from({ length: 4 }, (_, i) => answersOf(`crowd-${kind}`, [3 + i, 1]));
      await expect(answersOf(`crowd-${kind}`, [count, size])).rejects.toThrow(
        'gave too many answers: more than 10,000 answers or 64 MiB to one request wait to be sent; await the promise that send returns',
      );
      expect((await Promise.all(others)).map(({ length }) => length)).toEqual([3, 4, 5, 6]);
      expect(await answersOf(`crowd-${kind}`, [2, 1])).toEqual([0, 1]);
    },
  );

  it('may be some thousands at once', async () => {
    expect(await answersOf(`crowd-${kind}`, [9000, 1])).toHaveLength(9000);
  });
});
