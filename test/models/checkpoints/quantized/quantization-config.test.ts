import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../../models/checkpoints/open-checkpoint.js';
import { quantizationOf } from '../../../../models/checkpoints/quantized/quantization-config.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { writeQuantizedModel } from '../../../support/quantized-models.js';

const fresh = freshFolders('skein-quantization-config');

const labelOf = (config: unknown) => quantizationOf('config.json', { quantization_config: config })?.label;
const int4 = { num_bits: 4, type: 'int', strategy: 'group', group_size: 128, symmetric: false };
const compressed = (weights: object, more: object = {}, group: object = {}) => ({
  quant_method: 'compressed-tensors',
  config_groups: { group_0: { targets: ['Linear'], weights, ...group } },
  ...more,
});

describe('quantization_config', () => {
  it('names the form', () => {
    expect(quantizationOf('config.json', {})).toBeNull();
    expect(labelOf(null)).toBeUndefined();
    expect(labelOf({ quant_method: 'fp8', weight_block_size: [128, 128], fmt: 'e4m3' })).toBe(
      'FP8 (e4m3, blocks of 128 x 128)',
    );
    expect(labelOf({ quant_method: 'fp8' })).toBe('FP8 (e4m3)');
    expect(labelOf({ quant_method: 'awq', bits: 4, group_size: 128, version: 'GEMM' })).toBe(
      'AWQ (4 bits, groups of 128)',
    );
    expect(labelOf({ quant_method: 'awq', w_bit: 4, q_group_size: 64 })).toBe('AWQ (4 bits, groups of 64)');
    expect(labelOf({ quant_method: 'gptq', bits: 8, group_size: -1, desc_act: true })).toBe(
      'GPTQ (8 bits, a scale for each row, act-order)',
    );
    expect(labelOf({ quant_method: 'mxfp4' })).toBe('MXFP4');
    expect(labelOf(compressed(int4))).toBe('compressed-tensors (int4, groups of 128, zero points)');
    expect(
      labelOf(compressed({ num_bits: 8, type: 'float', strategy: 'block', block_structure: [128, 128] })),
    ).toBe('compressed-tensors (FP8, blocks of 128 x 128)');
    const fp4 = { num_bits: 4, type: 'float', strategy: 'tensor_group', group_size: 16 };
    expect(quantizationOf('config.json', { compression_config: compressed(fp4) })?.label).toBe(
      'compressed-tensors (NVFP4, groups of 16)',
    );
  });

  it.each<[what: string, fields: Record<string, unknown>, message: RegExp]>([
    [
      'bitsandbytes',
      { quantization_config: { quant_method: 'bitsandbytes' } },
      /bitsandbytes, which is not read: take the model's original files/,
    ],
    [
      'AutoRound in its own format',
      {
        quantization_config: { quant_method: 'auto-round', bits: 4, packing_format: 'auto_round:auto_gptq' },
      },
      /by AutoRound in its own format \(its exports auto_gptq and auto_awq are read\), which is not read: take/,
    ],
    [
      'ModelOpt',
      { quantization_config: { quant_method: 'modelopt', quant_algo: 'NVFP4' } },
      /by NVIDIA's ModelOpt, which is not read: take the model's original files/,
    ],
    [
      'FBGEMM',
      { quantization_config: { quant_method: 'fbgemm_fp8' } },
      /by FBGEMM \(FP8\), which is not read: take the model's original files/,
    ],
    [
      'MLX',
      { quantization: { group_size: 64, bits: 4 } },
      /by MLX, which is not read: take the model's original files/,
    ],
    [
      'MLX under the other name',
      { quantization_config: { group_size: 64, bits: 4 } },
      /by MLX, which is not read/,
    ],
    [
      'an unknown method',
      { quantization_config: { quant_method: 'hqq' } },
      /quant_method should be one of awq, compressed-tensors, fp8, gptq, mxfp4, found "hqq"\.$/,
    ],
    ['no method', { quantization_config: {} }, /quant_method should be one of .*, found nothing/],
    ['a text', { quantization_config: 'awq' }, /quantization_config should be an object, found "awq"/],
  ])('refuses %s', (_, fields, message) => {
    expect(() => quantizationOf('config.json', fields)).toThrow(message);
  });

  it.each<[what: string, config: Record<string, unknown>, message: RegExp]>([
    ['GPTQ of 3 bits', { quant_method: 'gptq', bits: 3, group_size: 128 }, /bits should be 4 or 8, found 3/],
    ['GPTQ of 2 bits', { quant_method: 'gptq', bits: 2, group_size: 128 }, /bits should be 4 or 8, found 2/],
    ['AWQ of 8 bits', { quant_method: 'awq', bits: 8, group_size: 128 }, /bits should be 4, found 8/],
    [
      'other orders of AWQ',
      { quant_method: 'awq', bits: 4, group_size: 128, version: 'gemv' },
      /version should be "gemm", found "gemv"/,
    ],
    ['no group size', { quant_method: 'gptq', bits: 4 }, /group_size should be a whole number/],
    [
      'other formats of GPTQ',
      { quant_method: 'gptq', bits: 4, group_size: 128, checkpoint_format: 'marlin' },
      /checkpoint_format should be "gptq" or "gptq_v2", found "marlin"/,
    ],
    ['e5m2', { quant_method: 'fp8', fmt: 'e5m2' }, /fmt should be "e4m3", found "e5m2"/],
    [
      'half a block',
      { quant_method: 'fp8', weight_block_size: [128] },
      /weight_block_size should be an array of 2/,
    ],
    ['3 bits', compressed({ ...int4, num_bits: 3 }), /group_0: weights: num_bits should be 4 or 8, found 3/],
    [
      'an unknown strategy',
      compressed({ ...int4, strategy: 'attn_head' }),
      /strategy should be one of tensor, channel/,
    ],
    ['an unknown format', compressed(int4, { format: 'marlin-24' }), /format should be one of int-quantized/],
    [
      'sparse weights',
      compressed(int4, { sparsity_config: { format: 'sparse-24-bitmask' } }),
      /sparsity_config should be of the format "dense"/,
    ],
    [
      'rotations that are computed while the model runs',
      compressed(int4, { transform_config: { config_groups: { u: { type: 'hadamard' } } } }),
      /transform_config should be without config_groups/,
    ],
    ['no groups', { quant_method: 'compressed-tensors' }, /config_groups should be an object of groups/],
    [
      'targets that are no names',
      compressed(int4, {}, { targets: [3] }),
      /targets should be a list of names/,
    ],
    ['a pattern that is none', compressed(int4, {}, { targets: ['re:('] }), /the pattern "\(" has/],
  ])('refuses %s', (_, config, message) => {
    expect(() => labelOf(config)).toThrow(message);
  });
});

describe('a file of its own', () => {
  const folderOf = (model: string, name: string, change: (fields: Record<string, unknown>) => object) => {
    const folder = writeQuantizedModel(fresh(), model);
    const file = join(folder, 'config.json');
    const { quantization_config: given, ...config } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify(config));
    writeFileSync(join(folder, name), JSON.stringify(change(given)));
    return folder;
  };

  it.each([
    [
      'gptq',
      'quantize_config.json',
      ({ bits, group_size, desc_act, sym }: Record<string, unknown>) => ({ bits, group_size, desc_act, sym }),
    ],
    [
      'awq',
      'quant_config.json',
      ({ bits, group_size }: Record<string, unknown>) => ({
        w_bit: bits,
        q_group_size: group_size,
        zero_point: true,
        version: 'GEMM',
      }),
    ],
  ])('of %s, %s, is read where config.json says nothing', (model, name, change) => {
    const plain = openCheckpoint(writeQuantizedModel(fresh(), model));
    const own = openCheckpoint(folderOf(model, name, change));
    expect(own.remarks).toEqual(plain.remarks);
    const located = ({ path, tensors }: typeof plain) =>
      JSON.stringify([...tensors]).replaceAll(path, 'the folder');
    expect(located(own)).toBe(located(plain));
    expect(own.sourceHash).not.toBe(plain.sourceHash);
  });

  it('is named by what is wrong in it, and left aside where config.json says it', () => {
    expect(() =>
      openCheckpoint(folderOf('gptq', 'quantize_config.json', (given) => ({ ...given, bits: 3 }))),
    ).toThrow(/quantize_config\.json: bits should be 4 or 8, found 3/);
    const both = writeQuantizedModel(fresh(), 'gptq');
    writeFileSync(join(both, 'quantize_config.json'), '{"bits": 3}');
    expect(openCheckpoint(both).remarks).toEqual(
      openCheckpoint(writeQuantizedModel(fresh(), 'gptq')).remarks,
    );
  });
});
