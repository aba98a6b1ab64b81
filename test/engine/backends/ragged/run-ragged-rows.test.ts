import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packElements } from '../../../../callbacks/infer/byte-elements.js';
import type { InferTensor } from '../../../../callbacks/infer/infer-types.js';
import type { InstanceRequest } from '../../../../engine/backends/backend.js';
import { BatchInputs } from '../../../../engine/backends/ragged/batch-inputs.js';
import { RowRunner } from '../../../../engine/backends/run-rows.js';
import { completeConfig } from '../../../../models/repository/complete-config.js';
import type { BatchInputKind } from '../../../../models/repository/model-config.js';
import { parseModelConfig } from '../../../../models/repository/read-model-config.js';

const configOf = (yaml: string) =>
  completeConfig(parseModelConfig(yaml, 'c', 'yaml'), {
    name: 'm',
    folder: 'm',
    backend: 'onnxruntime',
    defaultFilename: '',
    told: {},
  });

const floats = (name: string, shape: number[], values: readonly number[]): InferTensor => ({
  name,
  datatype: 'FP32',
  shape,
  data: new Uint8Array(Float32Array.from(values).buffer),
});
const read = ({ datatype, data }: InferTensor): number[] => {
  const { buffer } = data.slice();
  return [...(datatype === 'INT32' ? new Int32Array(buffer) : new Float32Array(buffer))];
};
/** A tensor with values of no importance. */
const sized = (name: string, shape: number[]) =>
  floats(name, shape, Array(shape.reduce((product, size) => product * size, 1)).fill(0.5));
const rowWith = (...inputs: InferTensor[]) => ({ inputs, batchSize: inputs[0]!.shape[0]! });

const made = (kind: BatchInputKind, shapes: number[][], type: 'TYPE_INT32' | 'TYPE_FP32' = 'TYPE_INT32') => {
  const input = { kind, target_name: ['T'], data_type: type, source_input: ['X'] };
  const parts = new BatchInputs({ batch_input: [input] }).of(
    shapes.map((shape) => rowWith(sized('X', shape))),
  );
  return parts.map(([part]) => [part!.shape, read(part!)]);
};

describe('a batch input', () => {
  it('has the element counts of the requests', () => {
    const shapes = [
      [1, 3],
      [2, 2],
      [1, 5],
    ];
    expect(made('BATCH_ELEMENT_COUNT', shapes)).toEqual([
      [[1], [3]],
      [[1], [4]],
      [[1], [5]],
    ]);
    expect(made('BATCH_ACCUMULATED_ELEMENT_COUNT', shapes, 'TYPE_FP32')).toEqual([
      [[1], [3]],
      [[1], [7]],
      [[1], [12]],
    ]);
    expect(made('BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO', shapes)).toEqual([
      [[2], [0, 3]],
      [[1], [7]],
      [[1], [12]],
    ]);
  });

  it('has the largest count as its size', () => {
    expect(
      made('BATCH_MAX_ELEMENT_COUNT_AS_SHAPE', [
        [1, 3],
        [1, 5],
        [1, 4],
      ]),
    ).toEqual([
      [[5], [0, 0, 0, 0, 0]],
      [[0], []],
      [[0], []],
    ]);
  });

  it('has the shape of each row, in the two forms of the example of model_config.proto', () => {
    const shapes = [
      [2, 3, 1],
      [1, 2, 2],
    ];
    expect(made('BATCH_ITEM_SHAPE', shapes)).toEqual([
      [
        [2, 2],
        [3, 1, 3, 1],
      ],
      [
        [1, 2],
        [2, 2],
      ],
    ]);
    expect(made('BATCH_ITEM_SHAPE_FLATTEN', shapes)).toEqual([
      [[4], [3, 1, 3, 1]],
      [[2], [2, 2]],
    ]);
  });
});

const RAGGED = configOf(`
max_batch_size: 64
input:
  - {name: X, data_type: TYPE_FP32, dims: [-1, -1], allow_ragged_batch: true}
  - {name: K, data_type: TYPE_FP32, dims: [1]}
batch_input:
  - {kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, target_name: [INDEX, COPY], data_type: TYPE_INT32, source_input: [X]}
  - {kind: BATCH_ITEM_SHAPE, target_name: [SHAPE], data_type: TYPE_FP32, source_input: [X]}
output:
  - {name: Y, data_type: TYPE_FP32, dims: [-1, -1]}
  - {name: S, data_type: TYPE_FP32, dims: [2]}
batch_output: [{target_name: [Y], source_input: [X]}]
`);

/** Y: each element times K of its row's request; S: the sizes of each row. */
function runModel(inputs: readonly InferTensor[], wanted: readonly string[]): InferTensor[] {
  const of = (name: string) => inputs.find((input) => input.name === name)!;
  const [x, index, shape, k] = ['X', 'INDEX', 'SHAPE', 'K'].map((name) => read(of(name)));
  expect([of('X').shape, of('INDEX').shape]).toEqual([[x!.length], [index!.length]]);
  expect(read(of('COPY'))).toEqual(index);
  expect(of('SHAPE').shape).toEqual([k!.length, 2]);
  let row = 0;
  const y = index!.slice(1).flatMap((end, request) => {
    const values = x!.slice(index![request]!, end);
    // Rows of a request have one K here.
    const factor = k![row]!;
    const perRow = shape![2 * row]! * shape![2 * row + 1]!;
    row += values.length / perRow;
    return values.map((value) => value * factor);
  });
  expect(index!.at(-1)).toBe(x!.length);
  const outputs = [floats('Y', [y.length], y), floats('S', [k!.length, 2], shape!)];
  return outputs.filter(({ name }) => wanted.includes(name));
}

interface Answered {
  outputs: unknown[];
  failure: string | null;
}

function request(inputs: InferTensor[], outputs: string[] | null = null): InstanceRequest & Answered {
  const answered: Answered = { outputs: [], failure: null };
  return Object.assign(answered, {
    inputs,
    outputs,
    batchSize: inputs[0]!.shape[0]!,
    sequence: null,
    send: (given: readonly InferTensor[]) => {
      answered.outputs = given.map((one) => [one.name, one.shape, read(one)]);
    },
    fail: (message: string) => {
      answered.failure = message;
    },
  }) as never;
}

describe('a batch of ragged requests', () => {
  const arbitrary = fc.record({
    rows: fc.integer({ min: 1, max: 3 }),
    sizes: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })),
    k: fc.integer({ min: -9, max: 9 }),
    outputs: fc.constantFrom<string[] | null>(null, ['Y'], ['S']),
  });

  it('gives each request what it alone is given', async () => {
    const runner = new RowRunner(RAGGED, runModel, new Set());
    const property = fc.asyncProperty(fc.array(arbitrary, { minLength: 1, maxLength: 8 }), async (asked) => {
      const requests = () =>
        asked.map(({ rows, sizes, k, outputs }, i) => {
          const count = rows * sizes[0] * sizes[1];
          const values = Array.from({ length: count }, (_, at) => 100 * i + at);
          return request(
            [floats('X', [rows, ...sizes], values), floats('K', [rows, 1], Array(rows).fill(k))],
            outputs,
          );
        });
      const [together, alone] = [requests(), requests()];
      await runner.execute(together);
      for (const one of alone) await runner.execute([one]);
      expect(together.map(({ outputs }) => outputs)).toEqual(alone.map(({ outputs }) => outputs));
      for (const [i, { rows, sizes, k, outputs }] of asked.entries()) {
        if (outputs?.includes('S')) continue;
        const values = Array.from({ length: rows * sizes[0] * sizes[1] }, (_, at) => (100 * i + at) * k);
        expect(together[i]!.outputs[0]).toEqual(['Y', [rows, ...sizes], values]);
      }
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it('fails where the output has not as many elements as the shapes take', async () => {
    const runner = new RowRunner(RAGGED, () => [floats('Y', [5], [1, 2, 3, 4, 5])], new Set());
    const inputs = [sized('X', [1, 2, 2]), sized('K', [1, 1])];
    await expect(runner.execute([request(inputs, ['Y'])])).rejects.toThrow(
      "Output 'Y' has the shape [5]; the requests of the batch take 4 elements of it.",
    );
  });

  it('is described anew where its requests are run alone after a failure', async () => {
    const seen: number[][] = [];
    const runner = new RowRunner(
      RAGGED,
      (inputs, wanted) => {
        seen.push(read(inputs.find(({ name }) => name === 'INDEX')!));
        if (seen.length === 1) throw new Error('not together');
        return runModel(inputs, wanted);
      },
      new Set(),
    );
    const requests = [2, 3].map((size) => request([sized('X', [1, 1, size]), sized('K', [1, 1])], ['Y']));
    await runner.execute(requests);
    expect(seen).toEqual([
      [0, 2, 5],
      [0, 2],
      [0, 3],
    ]);
    expect(requests.map(({ failure }) => failure)).toEqual([null, null]);
  });

  it('scatters texts, in the shapes of a reshape', async () => {
    const config = configOf(`
max_batch_size: 8
input: [{name: X, data_type: TYPE_STRING, dims: [-1], allow_ragged_batch: true}]
output: [{name: Y, data_type: TYPE_STRING, dims: [1, -1], reshape: {shape: [-1]}}]
batch_output: [{target_name: [Y], source_input: [X]}]
`);
    const runner = new RowRunner(config, ([x]) => [{ ...x!, name: 'Y' }], new Set());
    const texts = [['a'], ['bc', '', 'd']];
    const sent: InferTensor[] = [];
    const requests = texts.map((own) => {
      const one = request([
        { name: 'X', datatype: 'BYTES', shape: [1, own.length], data: packElements(own) },
      ]);
      return Object.assign(one, { send: ([y]: readonly InferTensor[]) => sent.push(y!) });
    });
    await runner.execute(requests);
    expect(sent.map(({ shape, data }) => [shape, Buffer.from(data)])).toEqual(
      texts.map((own) => [[1, 1, own.length], Buffer.from(packElements(own))]),
    );
  });
});
