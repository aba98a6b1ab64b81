import { describe, expect, it } from 'vitest';
import { layOutWeights } from '../../../engine/building/engine.js';
import { storedParts } from '../../../engine/directory/stored-precision.js';
import { planNetwork } from '../../../models/architectures/index.js';
import type { TensorLocation, TensorType } from '../../../models/checkpoints/checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { TINY_MODEL_CONFIG } from '../../support/tiny-checkpoint.js';

const plan = planNetwork(TINY_MODEL_CONFIG as ModelConfig);
const weightOf = (name: string) => plan.weights.find((weight) => weight.name === name)!;

/** A checkpoint whose matrices have the type of the first pattern that their name matches. */
function checkpoint(...types: [RegExp, TensorType][]) {
  const tensors = new Map<string, TensorLocation>();
  for (const { kind, sources } of plan.weights)
    for (const { name, rows, columns } of sources) {
      const type = kind === 'vector' ? 'F32' : types.find(([pattern]) => pattern.test(name))![1];
      tensors.set(name, { name, type, shape: [rows, columns], file: 'model.gguf', offset: 0, byteLength: 0 });
    }
  return { tensors };
}

const partsOf = (name: string, ...types: [RegExp, TensorType][]) =>
  storedParts(checkpoint(...types), weightOf(name));

describe('parts of a matrix that is stored', () => {
  it.each<[TensorType, string]>([
    ['F32', 'f32'],
    ['F16', 'bf16'],
    ['BF16', 'bf16'],
    ['Q8_0', 'int8'],
    ['Q4_0', 'int4'],
    ['Q4_1', 'int4'],
    ['Q5_0', 'q5_0'],
    ['Q5_1', 'q5_1'],
    ['Q2_K', 'int8'],
    ['Q3_K', 'q6_k'],
    ['Q4_K', 'q4_k'],
    ['Q5_K', 'q5_k'],
    ['Q6_K', 'q6_k'],
    ['IQ4_NL', 'iq4_nl'],
    ['IQ4_XS', 'iq4_xs'],
    ['MXFP4', 'mxfp4'],
    ['NVFP4', 'int8'],
    ['IQ1_S', 'int8'],
    ['IQ2_XXS', 'int8'],
    ['IQ3_S', 'int8'],
    ['TQ1_0', 'int4'],
    ['TQ2_0', 'int4'],
  ])('as %s are %s', (type, dtype) => {
    const { rows } = weightOf('layers.1.down');
    expect(partsOf('layers.1.down', [/./, type])).toEqual([{ dtype, rows }]);
  });

  it('are one for neighbours of one precision, and one for each other', () => {
    expect(partsOf('layers.0.qkv', [/v_proj/, 'Q6_K'], [/./, 'Q4_K'])).toEqual([
      { dtype: 'q4_k', rows: 12 },
      { dtype: 'q6_k', rows: 4 },
    ]);
    expect(partsOf('layers.0.qkv', [/k_proj/, 'Q8_0'], [/./, 'Q4_0'])).toEqual([
      { dtype: 'int4', rows: 8 },
      { dtype: 'int8', rows: 4 },
      { dtype: 'int4', rows: 4 },
    ]);
  });

  it('are gate and up where these differ', () => {
    expect(partsOf('layers.0.gateUp', [/gate/, 'Q4_K'], [/./, 'Q6_K'])).toEqual([
      { dtype: 'q4_k', rows: 10 },
      { dtype: 'q6_k', rows: 10 },
    ]);
    expect(partsOf('layers.0.gateUp', [/./, 'Q4_K'])).toEqual([{ dtype: 'q4_k', rows: 20 }]);
  });

  it('lie one behind the other in weights.bin, under the name of their weight', () => {
    const of = checkpoint([/v_proj/, 'Q8_0'], [/./, 'Q4_0']);
    const { tensors } = layOutWeights(plan, 'stored', 'bf16', (weight) => storedParts(of, weight));
    const qkv = tensors.filter(({ name }) => name === 'layers.0.qkv');
    expect(qkv).toEqual([
      { name: 'layers.0.qkv', dtype: 'int4', rows: 12, columns: 8, offset: qkv[0]!.offset, byteLength: 240 },
      {
        name: 'layers.0.qkv',
        dtype: 'int8',
        firstRow: 12,
        rows: 4,
        columns: 8,
        offset: qkv[0]!.offset + 256,
        byteLength: 136,
      },
    ]);
    expect(tensors.filter(({ name }) => name !== 'layers.0.qkv' && name !== 'layers.1.qkv')).toHaveLength(
      plan.weights.length - 2,
    );
  });
});
