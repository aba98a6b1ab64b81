import { describe, expect, it } from 'vitest';
import {
  type FILE_TYPES,
  fileTypeOf,
  MODEL_SHAPES,
  modelShapeOf,
  plannedTensors,
  weightBytes,
} from '../../../../tools/compare/shape/model-shapes.js';

const tensorsOf = (name: string, type: (typeof FILE_TYPES)[number]) =>
  plannedTensors(modelShapeOf(name), type);

describe('plannedTensors', () => {
  it('takes the gigabytes of the files that people download, without their vocabulary', () => {
    const sizes = MODEL_SHAPES.map(
      ({ name }) => [name, weightBytes(tensorsOf(name, 'Q4_K_M')) / 1e9] as const,
    );
    expect(sizes.map(([name, size]) => [name, size.toFixed(2)])).toEqual([
      ['llama-135m', '0.10'],
      ['llama-1b', '0.80'],
      ['llama-3b', '2.01'],
      ['llama-8b', '4.91'],
      ['qwen3.5-0.8b', '0.50'],
      ['qwen3.5-4b', '2.63'],
      ['qwen3-0.6b', '0.39'],
      ['qwen3-vl-2b', '1.10'],
      ['qwen3-4b', '2.49'],
      ['qwen3-30b-a3b', '18.55'],
      ['qwen3-moe-16-layers', '6.18'],
      ['gpt-oss-20b-6-layers', '3.66'],
      ['gemma-4-26b-a4b-6-layers', '3.76'],
    ]);
  });

  it('gives more bits to the values and down projections of the first and last layers and of every third', () => {
    const better = tensorsOf('llama-1b', 'Q4_K_M')
      .filter(({ name, type }) => name.endsWith('ffn_down.weight') && type === 'Q6_K')
      .map(({ name }) => Number(name.split('.')[1]));
    expect(better).toEqual([0, 1, 4, 7, 10, 13, 14, 15]);
    const values = tensorsOf('llama-1b', 'Q4_K_M').filter(({ name }) => name.endsWith('attn_v.weight'));
    expect(values.filter(({ type }) => type === 'Q6_K')).toHaveLength(8);
    expect(new Set(tensorsOf('llama-1b', 'Q4_0').map(({ type }) => type))).toEqual(
      new Set(['Q6_K', 'F32', 'Q4_0']),
    );
  });

  it('has blocks of 32 where rows are no whole superblocks, as llama-quantize does', () => {
    const typeOf = (tensor: string) =>
      tensorsOf('llama-135m', 'Q4_K_M').find(({ name }) => name === tensor)!.type;
    expect(typeOf('token_embd.weight')).toBe('Q8_0');
    expect(typeOf('blk.9.ffn_up.weight')).toBe('Q5_0');
    expect(typeOf('blk.9.ffn_down.weight')).toBe('Q4_K');
    expect(typeOf('blk.0.ffn_down.weight')).toBe('Q6_K');
  });

  it('has one matrix for embedding and logits where they are tied, and all experts of a layer in one tensor', () => {
    const has = (name: string, tensor: string) =>
      tensorsOf(name, 'Q4_K_M').find((one) => one.name === tensor);
    expect(has('llama-3b', 'output.weight')).toBeUndefined();
    expect(has('llama-3b', 'token_embd.weight')?.type).toBe('Q6_K');
    expect(has('llama-8b', 'output.weight')?.type).toBe('Q6_K');
    expect(has('llama-8b', 'token_embd.weight')?.type).toBe('Q4_K');
    expect(has('qwen3-30b-a3b', 'blk.5.ffn_down_exps.weight')?.shape).toEqual([128, 2048, 768]);
    expect(has('qwen3-4b', 'blk.5.attn_q_norm.weight')?.shape).toEqual([128]);
  });
});

describe('names', () => {
  it('are refused with those that there are', () => {
    expect(() => modelShapeOf('llama-2b')).toThrow(
      "--shape: there is no 'llama-2b'; there are llama-135m, llama-1b",
    );
    expect(() => fileTypeOf('Q5_K_M')).toThrow(
      "--type: there is no 'Q5_K_M'; there are Q4_0, Q4_K_M, Q8_0, BF16, IQ4_XS, IQ3_S.",
    );
  });
});
