import { describe, expect, it } from 'vitest';
import {
  automaticOutputPrecision,
  automaticPrecision,
  checkOutputPrecision,
  checkWeightPrecision,
} from '../../../engine/building/weight-precision.js';
import type { EnginePrecision, OutputPrecision } from '../../../engine/executors/executor.js';
import { planNetwork } from '../../../models/architectures/index.js';
import type { TensorLocation, TensorType } from '../../../models/checkpoints/checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { TINY_MODEL_CONFIG } from '../../support/tiny-checkpoint.js';

const plan = planNetwork(TINY_MODEL_CONFIG as ModelConfig);

/** Stored types of the layers' matrices by turns, and of everything else. */
function checkpoint(layers: TensorType[], outer: TensorType) {
  const tensors = new Map<string, TensorLocation>();
  let matrices = 0;
  for (const weight of plan.weights)
    for (const { name, rows, columns } of weight.sources) {
      const inLayer = weight.kind === 'matrix' && weight.name.startsWith('layers.');
      const type = inLayer ? layers[matrices++ % layers.length]! : weight.kind === 'matrix' ? outer : 'F32';
      tensors.set(name, { name, type, shape: [rows, columns], file: 'model.gguf', offset: 0, byteLength: 0 });
    }
  return { tensors };
}

describe('what auto means', () => {
  it.each<[TensorType[], TensorType, string]>([
    [['Q4_1', 'Q4_0'], 'Q8_0', 'int4'],
    [['Q4_1', 'Q4_1'], 'F16', 'int4'],
    [['Q4_1', 'Q8_0'], 'Q8_0', 'int8'],
    [['Q4_1', 'Q2_K'], 'Q8_0', 'int8'],
    [['Q4_1', 'Q5_0'], 'Q8_0', 'stored'],
    [['Q8_0', 'MXFP4'], 'Q8_0', 'stored'],
    [['IQ4_XS', 'IQ4_NL'], 'Q6_K', 'stored'],
    [['IQ4_XS', 'BF16'], 'Q6_K', 'bf16'],
    [['Q4_1', 'Q6_K'], 'Q8_0', 'stored'],
    [['Q4_K', 'Q5_1'], 'Q6_K', 'stored'],
    [['Q3_K', 'Q2_K'], 'Q6_K', 'stored'],
    [['Q4_K', 'F16'], 'Q6_K', 'bf16'],
    [['Q8_0'], 'Q8_0', 'int8'],
    [['Q8_0', 'F16'], 'Q8_0', 'bf16'],
    [['F32'], 'Q8_0', 'bf16'],
    [['BF16', 'BF16'], 'BF16', 'bf16'],
  ])('layers of %j with an embedding of %s: %s', (layers, outer, expected) => {
    expect(automaticPrecision(checkpoint(layers, outer), plan)).toBe(expected);
  });

  it.each<[EnginePrecision, TensorType, OutputPrecision]>([
    ['f32', 'Q6_K', 'f32'],
    ['bf16', 'Q6_K', 'bf16'],
    ['int8', 'Q8_0', 'int8'],
    ['int8', 'Q6_K', 'stored'],
    ['int8', 'Q5_1', 'stored'],
    ['int4', 'Q8_0', 'int8'],
    ['int4', 'Q4_1', 'int8'],
    ['int4', 'Q6_K', 'stored'],
    ['stored', 'Q8_0', 'stored'],
  ])(
    'gives the output layer of weights in %s, stored as %s, no less than 8 bits or its own: %s',
    (weights, outer, expected) => {
      expect(automaticOutputPrecision(weights, checkpoint(['Q4_1'], outer), plan)).toBe(expected);
    },
  );
});

describe('names of precisions', () => {
  it('takes those that there are', () => {
    expect(['auto', 'f32', 'bf16', 'int8', 'int4', 'stored'].map(checkWeightPrecision)).toHaveLength(6);
    expect(['auto', 'f32', 'bf16', 'int8', 'stored'].map(checkOutputPrecision)).toHaveLength(5);
  });

  it('refuses others with the list', () => {
    expect(() => checkWeightPrecision('int3')).toThrow(
      'Weight precision "int3" is not supported; supported: auto, f32, bf16, int8, int4, stored.',
    );
    expect(() => checkOutputPrecision('int4')).toThrow(
      'Output precision "int4" is not supported; supported: auto, f32, bf16, int8, stored.',
    );
  });
});
