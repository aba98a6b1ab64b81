import { describe, expect, it } from 'vitest';
import { layOutWeights } from '../../../engine/building/engine.js';
import {
  automaticOutputPrecision,
  automaticPrecision,
  checkOutputPrecision,
  checkWeightPrecision,
  PRECISIONS,
  routerWeights,
} from '../../../engine/building/weight-precision.js';
import type { EnginePrecision, OutputPrecision } from '../../../engine/directory/engine-directory.js';
import { storedParts } from '../../../engine/directory/stored-precision.js';
import { planNetwork } from '../../../models/architectures/index.js';
import type { TensorLocation, TensorType } from '../../../models/checkpoints/checkpoint.js';
import type { ModelConfig } from '../../../models/model-config.js';
import type { PlanWeight } from '../../../network/plan.js';
import { expertsConfig } from '../../support/experts-config.js';
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
    [['Q4_1', 'Q8_0'], 'Q8_0', 'stored'],
    [['Q4_1', 'Q2_K'], 'Q8_0', 'stored'],
    [['Q4_1', 'Q5_0'], 'Q8_0', 'stored'],
    [['Q8_0', 'MXFP4'], 'Q8_0', 'stored'],
    [['IQ4_XS', 'IQ4_NL'], 'Q6_K', 'stored'],
    [['TQ2_0', 'TQ1_0'], 'Q6_K', 'int4'],
    [['IQ2_XXS', 'IQ3_S'], 'Q6_K', 'int8'],
    [['IQ2_XXS', 'Q4_K'], 'Q6_K', 'stored'],
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

describe('the routers of experts', () => {
  const experts = planNetwork(expertsConfig());
  const typesOf = (router: TensorType, others: TensorType[]) => {
    const tensors = new Map<string, TensorLocation>();
    let matrices = 0;
    for (const { name: weight, sources } of experts.weights)
      for (const { name, rows, columns } of sources) {
        const type = weight.endsWith('router') ? router : others[matrices++ % others.length]!;
        tensors.set(name, { name, type, shape: [rows, columns], file: 'm', offset: 0, byteLength: 0 });
      }
    return { tensors };
  };

  it('are those matrices that experts have their scores from', () => {
    expect([...routerWeights(experts)]).toEqual(['layers.0.router', 'layers.1.router']);
    expect(routerWeights(plan).size).toBe(0);
  });

  it.each<[TensorType, TensorType[], string]>([
    ['F32', ['Q4_K', 'Q6_K'], 'stored'],
    ['F16', ['Q4_K', 'Q6_K'], 'stored'],
    ['F32', ['Q4_0'], 'int4'],
    ['F32', ['Q8_0'], 'int8'],
    ['Q4_0', ['BF16'], 'bf16'],
  ])('have no say in what auto means: %s beside %j is %s', (router, others, expected) => {
    expect(automaticPrecision(typesOf(router, others), experts)).toBe(expected);
  });

  it.each(PRECISIONS)('are f32 where the others are %s', (precision) => {
    const checkpoint = typesOf('Q4_0', ['Q8_0']);
    const partsOf = (weight: PlanWeight) => storedParts(checkpoint, weight);
    const { tensors } = layOutWeights(experts, precision, 'int8', partsOf);
    const routers = tensors.filter(({ name }) => name.endsWith('router'));
    expect(routers.map(({ dtype, rows }) => [dtype, rows])).toEqual([
      ['f32', 4],
      ['f32', 4],
    ]);
    const dtype = precision === 'stored' ? 'int8' : precision;
    expect(tensors.find(({ name }) => name === 'layers.1.experts.3.down')!.dtype).toBe(dtype);
  });
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
