import { describe, expect, it } from 'vitest';
import {
  describedValues,
  type OnnxValue,
  toldByOnnx,
  typeProblem,
} from '../../../../engine/backends/onnx/describe-onnx.js';
import type { ModelConfig } from '../../../../models/repository/model-config.js';

const tensor = (name: string, shape: OnnxValue['shape']): OnnxValue => ({
  name,
  type: 'tensor(float)',
  datatype: 'FP32',
  shape,
});
const zipMap: OnnxValue = { name: 'Z', type: 'seq(map(string,tensor(float)))', datatype: null, shape: null };
const told = (inputs: OnnxValue[], outputs: OnnxValue[], config: Partial<ModelConfig> = {}) =>
  toldByOnnx({ inputs, outputs }, config);
/** As an author writes it. */
const output = (name: string, dims: number[] = []) =>
  ({ name, data_type: 'TYPE_FP32', dims }) as unknown as ModelConfig['output'][number];

describe('what a session and its file tell together', () => {
  it('is the type of what is no tensor, and whether a shape without sizes is one number or anything', () => {
    const file = {
      inputs: [
        { name: 'X', type: 'tensor(float)', hasRank: false },
        { name: 'S', type: 'tensor(float)', hasRank: true },
        { name: 'K', type: 'tensor(int64)', hasRank: false },
      ],
      outputs: [{ name: 'Z', type: 'seq(map(string,tensor(float)))', hasRank: false }],
    };
    const float = { isTensor: true, type: 'float32' };
    const session = {
      inputMetadata: [
        { name: 'X', ...float, shape: [] },
        { name: 'S', ...float, shape: [] },
        { name: 'K', isTensor: true, type: 'int64', shape: ['k'] }, // which ONNX Runtime has inferred
      ],
      outputMetadata: [
        { name: 'Z', isTensor: false },
        { name: 'Q', isTensor: false },
      ],
    };
    expect(describedValues(session, file)).toEqual({
      inputs: [
        tensor('X', null),
        tensor('S', []),
        { name: 'K', type: 'tensor(int64)', datatype: 'INT64', shape: ['k'] },
      ],
      outputs: [zipMap, { name: 'Q', type: 'no tensor', datatype: null, shape: null }],
    });
  });

  it('names the tensor whose type opens no session', () => {
    const value = (name: string, type: string) => ({ name, type, hasRank: true });
    const problem = typeProblem({
      inputs: [value('X', 'tensor(float)')],
      outputs: [value('Z', 'seq(tensor(float))'), value('Y', 'tensor(bfloat16)')],
    });
    expect(problem).toMatch(/^its output 'Y' is tensor\(bfloat16\); tensors of bool, .* are taken$/);
    expect(typeProblem({ inputs: [value('X', 'tensor(float)')], outputs: [] })).toBeNull();
  });
});

describe('a configuration told by an ONNX file', () => {
  it('batches where the first size of all is free', () => {
    expect(told([tensor('X', ['n', 2])], [tensor('Y', ['n'])])).toMatchObject({
      max_batch_size: 4,
      input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [2] }],
      output: [{ name: 'Y', dims: [1], reshape: { shape: [] } }],
    });
    expect(told([tensor('X', ['n', 2])], [tensor('Y', [2, 2])])).toMatchObject({
      max_batch_size: 0,
      input: [{ dims: [-1, 2] }],
      output: [{ dims: [2, 2] }],
    });
  });

  it.each([
    [[2, 3], '[2,3]'],
    [[], '[]'],
  ] as const)('refuses batches where the first size is fixed: %j', (shape, shown) => {
    const call = () => told([tensor('X', shape)], [tensor('Y', ['n'])], { max_batch_size: 8 });
    expect(call).toThrow(
      `is 8, but tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is ${shown}`,
    );
    expect(call).toThrow(expect.objectContaining({ path: ['max_batch_size'] }));
  });

  it('takes the dims of the configuration for a tensor whose number of dimensions nobody knows', () => {
    const values = [[tensor('X', ['n'])], [tensor('Y', null)]] as const;
    const call = () => told([...values[0]], [...values[1]]);
    expect(call).toThrow("lacks dims for 'Y', of which the model's file does not say how many dimensions");
    expect(call).toThrow(expect.objectContaining({ path: ['output'] }));
    expect(told([...values[0]], [...values[1]], { output: [output('Y', [-1, 3])] })).toMatchObject({
      max_batch_size: 0,
      output: [{ name: 'Y', dims: [-1, 3] }],
    });
    const batched = { max_batch_size: 8, output: [output('Y', [3])] };
    expect(told([...values[0]], [...values[1]], batched)).toMatchObject({
      max_batch_size: 8,
      input: [{ dims: [1] }],
      output: [{ dims: [3] }],
    });
  });

  it('refuses what is no tensor, by name and type, but for outputs that the author leaves out', () => {
    const refusal =
      /^its output 'Z' is seq\(map\(string,tensor\(float\)\)\); tensors of bool, whole numbers .* are taken; a configuration that lists the other outputs serves these$/;
    expect(() => told([tensor('X', ['n'])], [tensor('L', ['n']), zipMap])).toThrow(refusal);
    expect(() => told([zipMap], [tensor('L', ['n'])])).toThrow("its input 'Z' is seq(map(");
    expect(told([tensor('X', ['n'])], [tensor('L', ['n']), zipMap], { output: [output('L')] })).toMatchObject(
      {
        max_batch_size: 4,
        output: [{ name: 'L' }, { name: 'Z' }],
      },
    );
    expect(() =>
      told([tensor('X', ['n'])], [zipMap], { output: [output('Z', [1])], max_batch_size: 0 }),
    ).toThrow(refusal);
  });
});
