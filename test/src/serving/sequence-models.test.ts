import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InferRequest } from '../../../callbacks/infer/infer-types.js';
import { int32, ModuleModels, numbersOf } from './support/module-models.js';

const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';
const BATCHED = `${IO}max_batch_size: 4\n`;
const control = (name: string, fields: string) =>
  `{name: ${name}, control: [{kind: CONTROL_SEQUENCE_${name}, ${fields}}]}`;
const CONTROLS = [
  control('START', 'int32_false_true: [0, 1]'),
  control('END', 'fp32_false_true: [0, 1]'),
  control('READY', 'bool_false_true: [false, true]'),
  control('CORRID', 'data_type: TYPE_UINT64'),
].join(', ');
/** So long that no sequence of a test ends by itself. */
const PATIENT = 'max_sequence_idle_microseconds: 600000000';

/** Keeps the instance while a file that a request names is not there. */
const GATED = `
import { existsSync } from 'node:fs';
const opened = async (requests) => {
  for (const { parameters: { gate } } of requests)
    while (gate && !existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
};
`;
/** Answers what it receives about each row. */
const TELLING = `${GATED}
export async function execute(requests) {
  await opened(requests);
  if (requests.some(({ parameters: { what } }) => what === 'exit')) process.exit(3);
  return requests.map(({ inputs, sequence, parameters: { what } }, i) => {
    if (what === 'fail') return { error: 'it was asked to fail' };
    const of = (name) => (inputs[name] ? Number(inputs[name].data[0]) : -1);
    const own = [sequence === null ? -1 : sequence.slot, Number(sequence?.start), Number(sequence?.end)];
    return { outputs: { Y: { data: [requests.length, i, of('START'), of('END'), of('READY'), of('CORRID'), ...own] } } };
  });
}`;
/** Sums what it was sent, in an implicit state of as many numbers as there were requests. */
const SUMMING = `${GATED}
export async function execute(requests) {
  await opened(requests);
  return requests.map(({ inputs: { X, IN }, parameters: { what } }) => {
    if (what === 'fail') return { error: 'it was asked to fail' };
    const sum = IN.data.at(-1) + X.data[0];
    const OUT = what === 'wrong' ? { data: ['x'] } : { data: [...IN.data, sum] };
    const outputs = { Y: { data: [sum, IN.data.length] } };
    return { outputs: what === 'forgetful' ? outputs : { ...outputs, OUT } };
  });
}`;
const stateOf = (more: string) =>
  `state: [{input_name: IN, output_name: OUT, data_type: TYPE_INT32, dims: [-1]${more}}]`;
const FROM_FILE = ', initial_state: [{name: a, data_type: TYPE_INT32, dims: [1], data_file: hundred}]';

const models = new ModuleModels();
const sequences = (batching: string) => `sequence_batching: {${batching}}\n`;

beforeAll(async () => {
  models.write('telling', BATCHED + sequences(`${PATIENT}, control_input: [${CONTROLS}]`), TELLING);
  models.write('unready', BATCHED + sequences(PATIENT), TELLING);
  models.write(
    'pair',
    `${IO}max_batch_size: 1\ninstance_group: [{count: 2}]\n${sequences(PATIENT)}`,
    `${GATED}
    import { threadId } from 'node:worker_threads';
    export async function execute(requests) {
      await opened(requests);
      if (requests.some(({ parameters: { what } }) => what === 'exit')) process.exit(3);
      return requests.map(() => ({ outputs: { Y: { data: [threadId] } } }));
    }`,
  );
  models.write(
    'oldest',
    BATCHED + sequences(`${PATIENT}, oldest: {max_candidate_sequences: 8}, control_input: [${CONTROLS}]`),
    TELLING,
  );
  models.write(
    'texts',
    BATCHED + sequences(`${PATIENT}, control_input: [${control('CORRID', 'data_type: TYPE_STRING')}]`),
    `
    export const execute = (requests) => requests.map(({ inputs: { CORRID }, sequence: { id } }) => ({
      outputs: { Y: { data: [CORRID.texts[0] === id ? CORRID.texts[0].length : -1] } } }));`,
  );
  models.write('summing', BATCHED + sequences(`${PATIENT}, ${stateOf('')}`), SUMMING);
  models.write('reloaded', BATCHED + sequences(`${PATIENT}, ${stateOf('')}`), SUMMING);
  models.write('hundred', BATCHED + sequences(`${PATIENT}, ${stateOf(FROM_FILE)}`), SUMMING);
  mkdirSync(join(models.folder, 'hundred/initial_state'));
  writeFileSync(join(models.folder, 'hundred/initial_state/hundred'), Int32Array.of(100));
  models.write(
    'shown',
    `input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]
output: [{name: Y, data_type: TYPE_INT32, dims: [-1]}, {name: OUT, data_type: TYPE_INT32, dims: [-1]}]
max_batch_size: 4
parameters: {max_state_bytes: {string_value: "12"}}
${sequences(`${PATIENT}, ${stateOf('')}`)}`,
    SUMMING,
  );
  models.write(
    'crowded',
    `${BATCHED}instance_group: [{count: 2}]\n${sequences(`${PATIENT}, ${stateOf('')}`)}`,
    SUMMING,
  );
  models.write(
    'crowded_oldest',
    `${BATCHED}instance_group: [{count: 2}]\n${sequences(`${PATIENT}, oldest: {max_candidate_sequences: 6}, ${stateOf('')}`)}`,
    SUMMING,
  );
  models.write(
    'isolated',
    `${BATCHED}parameters: {instance_kind: {string_value: process}}\n${sequences(`${PATIENT}, control_input: [${CONTROLS}], ${stateOf('')}`)}`,
    `export const execute = (requests) => requests.map(({ inputs: { X, IN, CORRID }, sequence }) => {
      const sum = IN.data.at(-1) + X.data[0];
      const data = [sum, Number(CORRID?.data[0] ?? 0n), Number(sequence?.id === CORRID?.data[0])];
      return { outputs: { Y: { data }, OUT: { data: [sum] } } };
    });`,
  );
  models.write('hasty', BATCHED + sequences(`max_sequence_idle_microseconds: 1000, ${stateOf('')}`), SUMMING);
  models.write('whole', `${IO}max_batch_size: 0\n${sequences(`${PATIENT}, ${stateOf('')}`)}`, SUMMING);
  models.write(
    'plain',
    BATCHED,
    `export const execute = (requests) => requests.map(({ sequence, batchSize }) => ({
      outputs: { Y: { data: Array(batchSize).fill(sequence === null ? 0 : 1), shape: [batchSize, 1] } } }));`,
  );
  models.write(
    'countdown',
    `${IO}max_batch_size: 4\nmodel_transaction_policy: {decoupled: true}\n${sequences(
      `iterative_sequence: true, ${PATIENT}, state: [{input_name: IN, output_name: OUT, data_type: TYPE_INT32, dims: [1]}]`,
    )}`,
    `export function execute(requests) {
      for (const request of requests) {
        const { X, IN } = request.inputs;
        const left = (request.sequence.start ? X.data[0] : IN.data[0]) - 1;
        void request.send({ outputs: { Y: { data: [left] }, OUT: { data: [left] } } });
        if (left > 0) request.reschedule();
      }
    }`,
  );
  models.write('stubborn', BATCHED, 'export const execute = ([request]) => request.reschedule();');
  models.write(
    'stepping',
    `${IO}max_batch_size: 1\n${sequences(`iterative_sequence: true, ${PATIENT}`)}`,
    `let passes = 0;
    export function execute([request]) {
      passes++;
      const { what } = request.parameters;
      if (passes % 3 !== 0 || what === 'both') request.reschedule();
      if (passes % 3 === 0 || what === 'both') request.send({ outputs: { Y: { data: [passes] } } });
    }`,
  );
  models.write(
    'ordered',
    `${IO}max_batch_size: 4\nmodel_transaction_policy: {decoupled: true}\n${sequences(
      `${PATIENT}, oldest: {max_candidate_sequences: 4, preserve_ordering: true}`,
    )}`,
    `${GATED}
    export async function execute(requests) {
      await opened(requests);
      // The last one first, and each twice.
      for (const { inputs: { X }, send } of requests.toReversed())
        for (const more of [0, 1]) await send({ outputs: { Y: { data: [X.data[0] + more] } } });
    }`,
  );
  models.write(
    'caller',
    BATCHED,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export const execute = (requests) => Promise.all(requests.map(async ({ inputs: { X }, parameters: { model, id } }) => {
      try {
        const ask = async (value, start, end) => {
          const { outputs } = await infer({ model, inputs: { X: { data: Int32Array.of(value), shape: [1, 1] } }, sequence: { id, start, end } });
          return outputs.Y.data[0];
        };
        const answers = [];
        for (const [i, value] of [...X.data].entries()) answers.push(await ask(value, i === 0, i === X.data.length - 1));
        return { outputs: { Y: { data: answers } } };
      } catch (error) {
        return { error: error.message };
      }
    }));`,
  );
  models.write(
    'itself',
    `${IO}max_batch_size: 1\ninstance_group: [{count: 2}]\n${sequences(PATIENT)}`,
    `let infer;
    export function initialize(setup) { infer = setup.infer; }
    export async function execute([{ inputs: { X }, sequence }]) {
      if (X.data[0] === 0) return [{ outputs: { Y: { data: [7] } } }];
      const own = { id: X.data[0] === 1 ? sequence.id : sequence.id + 100n, start: X.data[0] === 2, end: true };
      try {
        const { outputs } = await infer({ model: 'itself', inputs: { X: { data: Int32Array.of(0), shape: [1, 1] } }, sequence: own });
        return [{ outputs: { Y: { data: outputs.Y.data } } }];
      } catch (error) {
        return [{ error: error.message }];
      }
    }`,
  );
  await models.open();
});
afterAll(() => models.close());

type Flags = { start?: boolean; end?: boolean };
type More = Flags & Partial<Omit<InferRequest, 'sequence'>>;

/** The answer to a request of a sequence. */
function ask(model: string, id: bigint | number | string, value = 0, more: More = {}): Promise<number[]> {
  const { start = false, end = false, ...fields } = more;
  const sequence = { id: typeof id === 'number' ? BigInt(id) : id, start, end };
  return models.numbers(model, [[value]], { sequence, ...fields });
}

let numGates = 0;
/** A request's parameters that keep its instance until the gate is opened. */
function gate(): { parameters: { gate: string }; open(): void } {
  const path = join(models.folder, `gate-${numGates++}`);
  return { parameters: { gate: path }, open: () => writeFileSync(path, '') };
}

const activity = (model: string) => models.repository.find(model, '').activity();
const outcome = (answer: Promise<unknown>) => answer.catch((error: Error) => error.message);

describe('a sequence', () => {
  it('is told of by control inputs, and beside them', async () => {
    expect(await ask('telling', 9, 0, { start: true })).toEqual([1, 0, 1, 0, 1, 9, 0, 1, 0]);
    expect(await ask('telling', 9)).toEqual([1, 0, 0, 0, 1, 9, 0, 0, 0]);
    expect(await ask('telling', 9, 0, { end: true })).toEqual([1, 0, 0, 1, 1, 9, 0, 0, 1]);
    expect(await ask('telling', 9, 0, { start: true, end: true })).toEqual([1, 0, 1, 1, 1, 9, 0, 1, 1]);
    const id = await ask('texts', 'a sequence', 0, { start: true, end: true });
    expect(id).toEqual(['a sequence'.length]);
  });

  it('keeps its slot, below which an empty row is seen by whoever asks for READY', async () => {
    for (const model of ['telling', 'unready']) {
      await ask(model, 1, 0, { start: true });
      await ask(model, 2, 0, { start: true });
      const [rows, index, ...others] = await ask(model, 2);
      expect([rows, index, others.at(-3)]).toEqual(model === 'telling' ? [2, 1, 1] : [1, 0, 1]);
      await ask(model, 1, 0, { end: true });
      await ask(model, 2, 0, { end: true });
    }
    const { batch_stats } = models.repository.find('telling', '').statistics();
    expect(batch_stats.map(({ batch_size }) => batch_size)).toEqual([1, 2]);
  });

  it('reaches the same instance, whichever is free', async () => {
    const first = await ask('pair', 1, 0, { start: true });
    const second = await ask('pair', 2, 0, { start: true });
    expect(first).not.toEqual(second);
    for (let i = 0; i < 3; i++) {
      expect(await ask('pair', 1)).toEqual(first);
      expect(await ask('pair', 2)).toEqual(second);
    }
    await Promise.all([1, 2].map((id) => ask('pair', id, 0, { end: true })));
  });

  it('shares batches with others where the oldest go together, and never with itself', async () => {
    const held = gate();
    const first = ask('oldest', 1, 0, { start: true, ...held });
    await expect.poll(() => activity('oldest').running).toBe(1);
    const asked = [
      ask('oldest', 2, 0, { start: true }),
      ask('oldest', 2, 0, { end: true }),
      ask('oldest', 3, 0, { start: true, end: true }),
    ];
    held.open();
    await first;
    // Rows, and the index of the request among them.
    expect((await Promise.all(asked)).map((told) => told.slice(0, 2))).toEqual([
      [2, 0],
      [1, 0],
      [2, 1],
    ]);
    await ask('oldest', 1, 0, { end: true });
    expect(activity('oldest').sequences).toEqual({ live: 0, backlog: 0 });
  });

  it('waits in the backlog where all slots are taken, and follows whoever ends', async () => {
    await ask('pair', 1, 0, { start: true });
    await ask('pair', 2, 0, { start: true });
    const third = ask('pair', 3, 0, { start: true, end: true });
    expect(activity('pair').sequences).toEqual({ live: 2, backlog: 1 });
    const [instance] = await ask('pair', 2, 0, { end: true });
    expect(await third).toEqual([instance]);
    await ask('pair', 1, 0, { end: true });
    expect(activity('pair').sequences).toEqual({ live: 0, backlog: 0 });
  });

  it('is ended where it sends nothing, and its state with it', async () => {
    await ask('hasty', 1, 5, { start: true });
    await expect.poll(() => activity('hasty').sequences!.live).toBe(0);
    await expect(ask('hasty', 1, 5)).rejects.toThrow(
      "inference request for sequence 1 to model 'hasty' must specify the START flag on the first request of the sequence",
    );
    expect(await ask('hasty', 1, 6, { start: true })).toEqual([6, 1]);
  });

  it("is its owner's: nobody else finds it, whatever id they give", async () => {
    expect(await ask('summing', 7, 5, { start: true, owner: 'ali' })).toEqual([5, 1]);
    expect(await ask('summing', 7, 50, { start: true, owner: 'bob' })).toEqual([50, 1]);
    await expect(ask('summing', 7, 1)).rejects.toThrow(
      "inference request for sequence 7 to model 'summing' must specify the START flag",
    );
    await expect(ask('summing', 'ali\0number 7', 1)).rejects.toThrow('must specify the START flag');
    expect(await ask('summing', 7, 1, { end: true, owner: 'ali' })).toEqual([6, 2]);
    expect(await ask('summing', 7, 1, { end: true, owner: 'bob' })).toEqual([51, 2]);
  });

  it('is nothing to a model without sequences, and needs nothing of it', async () => {
    expect(await ask('plain', 5, 1)).toEqual([0]);
    expect(await models.numbers('plain', [[1], [2]])).toEqual([0, 0]);
  });
});

describe('a request that fits no sequence', () => {
  it.each([
    [
      'has an unknown id',
      'telling',
      { sequence: { id: 77n, start: false, end: false } },
      "inference request for sequence 77 to model 'telling' must specify the START flag on the first request of the sequence",
    ],
    [
      'has a text that is unknown',
      'texts',
      { sequence: { id: 'x', start: false, end: true } },
      "inference request for sequence x to model 'texts' must specify the START flag on the first request of the sequence",
    ],
    [
      'has no id',
      'telling',
      { sequence: null },
      "inference request to model 'telling' must specify a non-zero or non-empty correlation ID",
    ],
    [
      'has a text where CORRID is a number',
      'telling',
      { id: 'q', sequence: { id: '5', start: true, end: false } },
      "[request id: q] sequence batching control 'CORRID' data-type is 'BYTES', but model 'telling' expects 'UINT64'",
    ],
    [
      'has a number where CORRID is a text',
      'texts',
      { sequence: { id: 5n, start: true, end: false } },
      "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'UINT64', but model 'texts' expects 'BYTES'",
    ],
  ])('%s', async (_, model, fields, message) => {
    await expect(models.numbers(model, [[1]], fields)).rejects.toMatchObject({ message, kind: 'invalid' });
  });

  it('has more than one row', async () => {
    const sequence = { id: 5n, start: true, end: true };
    await expect(models.numbers('telling', [[1], [2]], { sequence })).rejects.toThrow(
      "inference request to model 'telling' must specify batch-size 1 due to requirements of sequence batcher",
    );
    await expect(models.numbers('telling', [[1], [2]])).rejects.toThrow('must specify batch-size 1');
  });

  it('gives a control input itself', async () => {
    const inputs = [int32('X', [[1]]), int32('START', [[1]])];
    const sequence = { id: 5n, start: true, end: true };
    await expect(models.infer('telling', inputs, { sequence })).rejects.toThrow(
      "unexpected inference input 'START' for model 'telling'",
    );
  });
});

describe('an implicit state', () => {
  it('is the input of the next request, in sizes of its own, and of each sequence its own', async () => {
    expect(await ask('summing', 1, 5, { start: true })).toEqual([5, 1]);
    expect(await ask('summing', 2, 100, { start: true })).toEqual([100, 1]);
    expect(await ask('summing', 1, 6)).toEqual([11, 2]);
    expect(await ask('summing', 2, 1)).toEqual([101, 2]);
    expect(await ask('summing', 1, 7, { end: true })).toEqual([18, 3]);
    expect(await ask('summing', 1, 1, { start: true })).toEqual([1, 1]);
    // A START while it is live, too.
    expect(await ask('summing', 2, 9, { start: true, end: true })).toEqual([9, 1]);
  });

  it('begins with what its file says', async () => {
    expect(await ask('hundred', 1, 5, { start: true })).toEqual([105, 1]);
    expect(await ask('hundred', 1, 5, { end: true })).toEqual([110, 2]);
  });

  it('is kept of a model that takes no batches, too', async () => {
    const sequence = (start: boolean) => ({ sequence: { id: 1n, start, end: false } });
    const x = { ...int32('X', [[4]]), shape: [1] };
    await models.infer('whole', [x], sequence(true));
    const [second] = await models.infer('whole', [x], sequence(false));
    expect(numbersOf(second!.outputs[0]!)).toEqual([8, 2]);
  });

  it('is returned where the outputs list it and the client wants it', async () => {
    const of = async (outputs: string[] | null, start = true) => {
      const sequence = { id: 1n, start, end: !start };
      const [response] = await models.infer('shown', [int32('X', [[5]])], { outputs, sequence });
      return response!.outputs.map((output) => [output.name, numbersOf(output)]);
    };
    expect(await of(null)).toEqual([
      ['Y', [5, 1]],
      ['OUT', [0, 5]],
    ]);
    expect(await of(['Y'])).toEqual([['Y', [5, 1]]]);
    expect(await of(['Y'], false)).toEqual([['Y', [10, 2]]]);
    await expect(ask('summing', 1, 5, { start: true, outputs: ['OUT'] })).rejects.toThrow(
      "unexpected inference output 'OUT' for model 'summing'",
    );
  });

  it('stays as it was where a request fails, gives a wrong one, or gives none', async () => {
    await ask('summing', 1, 5, { start: true });
    await expect(ask('summing', 1, 1, { parameters: { what: 'fail' } })).rejects.toThrow(
      'it was asked to fail',
    );
    await expect(ask('summing', 1, 1, { parameters: { what: 'wrong' } })).rejects.toThrow(
      "the model 'summing' gave a wrong answer: 'OUT' holds x; numbers are expected for INT32",
    );
    expect(await ask('summing', 1, 1, { parameters: { what: 'forgetful' } })).toEqual([6, 2]);
    expect(await ask('summing', 1, 10, { end: true })).toEqual([15, 2]);
  });

  it('has a bound, beyond which its request fails and no other one', async () => {
    await ask('shown', 2, 1, { start: true });
    await expect(ask('shown', 3, 1, { start: true })).rejects.toThrow(
      "the model 'shown' gave a wrong answer: the states of its sequences would take 16 bytes in this instance; max_state_bytes is 12",
    );
    expect(await ask('shown', 2, 2)).toEqual([3, 2]);
    await ask('shown', 2, 1, { end: true });
    expect(await ask('shown', 3, 1)).toEqual([1, 1]);
    await ask('shown', 3, 1, { end: true });
  });
});

describe('many clients at once', () => {
  it.each(['crowded', 'crowded_oldest'])('are given the sums of their own sequences: %s', async (model) => {
    // Sequences of other lengths, more than there are slots, some of which start over before they end.
    const client = async (id: number) => {
      for (let round = 0; round < 3; round++) {
        let sum = 0;
        const length = 1 + ((id * 7 + round * 3) % 9);
        for (let i = 0; i < length; i++) {
          const value = id * 1000 + i;
          sum += value;
          const isEnd = i === length - 1 && (id + round) % 3 > 0;
          const flags = { start: i === 0, end: isEnd };
          expect(await ask(model, id, value, flags)).toEqual([sum, i + 1]);
        }
      }
      await ask(model, id, 0, { start: true, end: true });
    };
    await Promise.all(Array.from({ length: 24 }, (_, i) => client(i + 1)));
    expect(activity(model)).toMatchObject({ waiting: 0, running: 0, sequences: { live: 0, backlog: 0 } });
  });

  it('may send the requests of a sequence without waiting for their answers', async () => {
    const all = Array.from({ length: 12 }, (_, id) =>
      Array.from({ length: 5 }, (_, i) => ask('crowded', id + 1, 1, { start: i === 0, end: i === 4 })),
    );
    for (const answers of all) {
      expect((await Promise.all(answers)).map(([sum]) => sum)).toEqual([1, 2, 3, 4, 5]);
    }
  });

  it('are served by a process too', async () => {
    const id = 2n ** 53n + 2n;
    expect(await ask('isolated', id, 4, { start: true })).toEqual([4, Number(id), 1].map((one) => one | 0));
    expect((await ask('isolated', id, 5, { end: true }))[0]).toBe(9);
  });
});

describe('requests that are not run', () => {
  it('are told that a request before them was cancelled, with which their sequence ended', async () => {
    const held = gate();
    const first = ask('summing', 5, 1, { start: true, ...held });
    await expect.poll(() => activity('summing').running).toBe(1);
    const gone = new AbortController();
    const second = outcome(ask('summing', 5, 1, { signal: gone.signal }));
    const third = outcome(ask('summing', 5, 1));
    gone.abort(new Error('The client has left.'));
    expect(await second).toBe('The client has left.');
    expect(await third).toBe(
      "sequence 5 of the model 'summing' has ended before this request was run: a request before it was cancelled",
    );
    await expect(ask('summing', 5, 1)).rejects.toThrow('must specify the START flag');
    held.open();
    expect(await first).toEqual([1, 1]);
    await expect.poll(() => activity('summing').sequences!.live).toBe(0);
  });

  it('are refused where their sequence has waited in the backlog for longer than they may', async () => {
    await ask('pair', 1, 0, { start: true });
    await ask('pair', 2, 0, { start: true });
    const late = [
      outcome(ask('pair', 3, 0, { start: true, timeoutUs: 60_000_000 })),
      outcome(ask('pair', 3, 0, { timeoutUs: 2000 })),
    ];
    expect(await Promise.all(late)).toEqual(
      Array(2).fill('timeout of the corresponding sequence has been expired'),
    );
    await expect(ask('pair', 3)).rejects.toThrow('must specify the START flag');
    await Promise.all([1, 2].map((id) => ask('pair', id, 0, { end: true })));
  });

  it('run though whoever sent the one that runs has left', async () => {
    const held = gate();
    const gone = new AbortController();
    const first = outcome(ask('summing', 6, 1, { start: true, signal: gone.signal, ...held }));
    await expect.poll(() => activity('summing').running).toBe(1);
    const second = ask('summing', 6, 2, { end: true });
    gone.abort(new Error('The client has left.'));
    expect(await first).toBe('The client has left.');
    held.open();
    expect(await second).toEqual([3, 2]);
  });
});

describe('an instance that is lost', () => {
  it('takes its sequences with it, each later request of which is told so, and no other one', async () => {
    const [first] = await ask('pair', 1, 0, { start: true });
    const [second] = await ask('pair', 2, 0, { start: true });
    const held = gate();
    const third = ask('pair', 2, 0, held);
    const lost = outcome(ask('pair', 1, 0, { parameters: { what: 'exit' } }));
    const behind = outcome(ask('pair', 1));
    expect(await lost).toMatch(
      /^the model 'pair' failed: Instance pair_0_\d's worker thread ended unexpectedly/,
    );
    expect(await behind).toBe(
      "sequence 1 of the model 'pair' has ended before this request was run: the instance that ran it was lost, and its state with it",
    );
    for (let i = 0; i < 2; i++) {
      await expect(ask('pair', 1)).rejects.toThrow(
        "inference request for sequence 1 to model 'pair' must specify the START flag on the first request of the sequence: the instance that ran the sequence was lost, and its state with it",
      );
    }
    const again = ask('pair', 1, 0, { start: true, end: true });
    held.open();
    expect(await third).toEqual([second]);
    expect((await again)[0]).not.toBe(first);
    await ask('pair', 2, 0, { end: true });
    expect(activity('pair')).toMatchObject({ restarts: 1, sequences: { live: 0, backlog: 0 } });
  });
});

describe('a model that asks another one', () => {
  const asked = (model: string, values: number[], id: bigint | number | string = 31) =>
    models.numbers('caller', [values], { parameters: { model, id } });

  it('may go through a sequence', async () => {
    expect(await asked('summing', [1, 2, 3])).toEqual([1, 3, 6]);
    expect(await asked('texts', [0, 0], 'called')).toEqual([6, 6]);
  });

  it.each([0, -1, 1.5, '', 'x'.repeat(129)])('may not name %s', async (id) => {
    await expect(asked('summing', [1], id)).rejects.toThrow(
      "a call of another model is refused: its sequence's id is no whole number from 1 to 2^64 - 1 and no text of 1 to 128 characters",
    );
  });

  it('may not wait for the instance that it keeps, though another one is free', async () => {
    await expect(ask('itself', 1, 1, { start: true })).rejects.toThrow(
      "the model 'itself' cannot be asked: the instance that has the sequence waits for answers which wait for this one",
    );
    expect(await ask('itself', 1, 2)).toEqual([7]);
  });
});

describe('an iterative sequence', () => {
  const all = async (value: number, fields: Partial<InferRequest> = {}) => {
    const responses = await models.infer('countdown', [int32('X', [[value]])], fields);
    return responses.map(({ outputs }) => numbersOf(outputs[0]!)[0]);
  };

  it('is one request that runs until the model lets it go, in batches with others', async () => {
    expect(await Promise.all([all(4), all(1), all(3)])).toEqual([[3, 2, 1, 0], [0], [2, 1, 0]]);
    expect(activity('countdown').sequences).toEqual({ live: 0, backlog: 0 });
    expect(models.repository.find('countdown', '').statistics()).toMatchObject({ inference_count: 3 });
  });

  it('may have an id of its client, and ends with the request too', async () => {
    const sequence = { id: 1n, start: true, end: true };
    expect(await all(2, { sequence })).toEqual([1, 0]);
    await expect(all(2, { sequence: { ...sequence, start: false } })).rejects.toThrow(
      'must specify the START flag',
    );
  });

  it('may have its one answer in the end, and may not go on behind it', async () => {
    expect(await models.numbers('stepping', [[1]])).toEqual([3]);
    await expect(models.numbers('stepping', [[1]], { parameters: { what: 'both' } })).rejects.toThrow(
      "the model 'stepping' answered and put back a request, which only a decoupled model may",
    );
  });

  it('is nothing that other models may ask for', async () => {
    await expect(models.numbers('stubborn', [[1]])).rejects.toThrow(
      "the model 'stubborn' put a request back, which only one with iterative_sequence may",
    );
  });
});

describe('answers in the order of requests', () => {
  it('are those of a batch of the oldest, however the model gives them', async () => {
    const held = gate();
    const order: number[] = [];
    const send = (id: number, value: number, more: More = {}) =>
      new Promise<void>((resolve, reject) => {
        const { start = true, end = true, ...fields } = more;
        const request = {
          id: '',
          inputs: [int32('X', [[value]])],
          outputs: null,
          parameters: {},
          sequence: { id: BigInt(id), start, end },
          priority: 0,
          timeoutUs: 0,
          ...fields,
        };
        models.repository.find('ordered', '').infer(request, {
          response: ({ outputs }) => {
            order.push(numbersOf(outputs[0]!)[0]!);
          },
          end: resolve,
          fail: reject,
        });
      });
    const first = send(1, 0, held);
    await expect.poll(() => activity('ordered').running).toBe(1);
    const others = [send(2, 20), send(3, 30), send(4, 40)];
    held.open();
    await Promise.all([first, ...others]);
    expect(order).toEqual([0, 1, 20, 21, 30, 31, 40, 41]);
  });
});

describe('an unload', () => {
  it('runs what waits in the backlog, though the slots are those of sequences that are live', async () => {
    models.write('leaving', `${IO}max_batch_size: 1\n${sequences(`${PATIENT}, ${stateOf('')}`)}`, SUMMING);
    await models.repository.load('leaving');
    const held = gate();
    const first = ask('leaving', 1, 1, { start: true, ...held });
    const others = [
      ask('leaving', 2, 2, { start: true }),
      ask('leaving', 2, 2),
      ask('leaving', 3, 3, { start: true }),
    ];
    expect(activity('leaving').sequences).toEqual({ live: 1, backlog: 2 });
    const unloaded = models.repository.unload('leaving');
    held.open();
    expect(await Promise.all([first, ...others])).toEqual([
      [1, 1],
      [2, 1],
      [4, 2],
      [3, 1],
    ]);
    await unloaded;
  });

  it('refuses at the load what is wrong with a sequence_batching, with the line', async () => {
    const wrong = async (batching: string) => {
      models.write('wrong', BATCHED + sequences(batching), SUMMING);
      return outcome(models.repository.load('wrong'));
    };
    expect(await wrong(stateOf(FROM_FILE))).toMatch(
      /^failed to load 'wrong', .*config\.yaml:5: sequence_batching\.state\[0\]\.initial_state\[0\]\.data_file is "hundred"; there is no file .*initial_state\/hundred\.$/,
    );
    expect(await wrong('direct: {minimum_slot_utilization: 2}')).toMatch(
      /config\.yaml:5: .*is 2; a number from 0 to 1/,
    );
    expect(await wrong('control_input: [{name: X, control: [{}]}]')).toMatch(
      /is 'X', the name of input\[0\] too/,
    );
  });
});

describe('a load that changes a model', () => {
  const next = async (id: bigint, value: number, flags: { start?: boolean; end?: boolean } = {}) => {
    const sequence = { id, start: false, end: false, ...flags };
    const [answer] = await models.infer('reloaded', [int32('X', [[value]])], { sequence });
    return numbersOf(answer!.outputs[0]!)[0];
  };
  const instances = () => models.repository.find('reloaded', '').activity!().instances.length;

  let numReloads = 0;
  /** A change that instances which come and go cannot make. */
  const reload = () => {
    const more = `parameters: {changed: "${numReloads++}"}\n`;
    models.write('reloaded', BATCHED + sequences(`${PATIENT}, ${stateOf('')}`) + more, SUMMING);
    return models.repository.load('reloaded');
  };

  it('lets sequences go on where their state is, through one load after the other', async () => {
    expect(await next(1n, 5, { start: true })).toBe(5);
    await reload();
    expect(await next(2n, 100, { start: true })).toBe(100);
    await reload();
    expect([await next(1n, 6), await next(2n, 1)]).toEqual([11, 101]);
    expect(await next(1n, 7, { end: true })).toBe(18);
    // Its sequence is over, in whichever version.
    await expect(next(1n, 8)).rejects.toThrow(/must specify the START flag/);
    expect(await next(2n, 1)).toBe(102);
  });

  it('begins a sequence again in the new instances, and never goes back to the former state', async () => {
    expect(await next(3n, 5, { start: true })).toBe(5);
    await reload();
    expect(await next(3n, 1, { start: true })).toBe(1);
    expect(await next(3n, 1, { end: true })).toBe(2);
    await expect(next(3n, 1)).rejects.toThrow(/must specify the START flag/);
  });

  it('ends the sequences of the oldest versions where five loads have left some', async () => {
    for (let id = 10n; id < 16n; id++) {
      expect(await next(id, Number(id), { start: true })).toBe(Number(id));
      await reload();
    }
    await expect(next(10n, 1)).rejects.toThrow();
    expect(await next(15n, 1)).toBe(16);
  });

  it('ends with the model, whose former instances are closed too', async () => {
    await models.repository.unload('reloaded');
    await models.repository.load('reloaded');
    expect(instances()).toBe(1);
    await expect(next(15n, 1)).rejects.toThrow(/must specify the START flag/);
  });
});
