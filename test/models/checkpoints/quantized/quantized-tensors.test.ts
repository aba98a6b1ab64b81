import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../../models/checkpoints/open-checkpoint.js';
import { quantizationOf } from '../../../../models/checkpoints/quantized/quantization-config.js';
import { quantizedTensors } from '../../../../models/checkpoints/quantized/quantized-tensors.js';
import { readSafetensors } from '../../../../models/checkpoints/safetensors.js';
import type { TestTensor } from '../../../../tools/support/gguf-writer.js';
import { safetensorsBytes } from '../../../../tools/support/safetensors-writer.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { writeQuantizedModel } from '../../../support/quantized-models.js';

const fresh = freshFolders('skein-quantized-tensors');
const BYTES: Readonly<Record<string, number>> = {
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  BF16: 2,
  F16: 2,
  F32: 4,
  I32: 4,
  I64: 8,
};

function tensor(name: string, type: string, shape: number[], fill = 0): TestTensor {
  const size = shape.reduce((product, one) => product * one, BYTES[type]!);
  return { name, type, shape, data: Buffer.alloc(size, fill) };
}

/** The matrices of a file with these tensors. */
function matrices(config: object, tensors: readonly TestTensor[]) {
  const file = join(fresh(), 'model.safetensors');
  writeFileSync(file, safetensorsBytes(tensors));
  return quantizedTensors(
    readSafetensors(file),
    quantizationOf('config.json', { quantization_config: config })!,
  );
}

const FP8 = { quant_method: 'fp8', weight_block_size: [128, 128] };
const GPTQ = { quant_method: 'gptq', bits: 4, group_size: 32 };
const INT4 = {
  quant_method: 'compressed-tensors',
  config_groups: {
    small: {
      targets: ['re:.*down'],
      weights: { num_bits: 4, strategy: 'group', group_size: 32, symmetric: false },
    },
    rest: { targets: ['Linear'], weights: { num_bits: 4, strategy: 'channel' } },
  },
};

describe('tensors of a quantised model', () => {
  it('become a matrix for each module, and the scales of activations and caches are left out', () => {
    const made = matrices(FP8, [
      tensor('a.weight', 'F8_E4M3', [300, 130]),
      tensor('a.weight_scale_inv', 'F32', [3, 2]),
      tensor('a.input_scale', 'F32', [1]),
      tensor('a.k_scale', 'F32', [1]),
      tensor('a.bias', 'BF16', [300]),
      tensor('norm.weight', 'BF16', [130]),
    ]);
    expect(made.map(({ name, type, shape }) => [name, type, shape])).toEqual([
      ['a.bias', 'BF16', [300]],
      ['norm.weight', 'BF16', [130]],
      ['a.weight', 'F32', [300, 130]],
    ]);
    expect(made[2]!.quantized).toMatchObject({ codes: 'e4m3', rowsEach: 128, columnsEach: 128 });
  });

  it.each<[shape: number[], rowsEach: number, columnsEach: number]>([
    [[], 300, 130],
    [[1], 300, 130],
    [[300, 1], 1, 130],
    [[300], 1, 130],
  ])('may share a scale of shape %j', (shape, rowsEach, columnsEach) => {
    const [made] = matrices({ quant_method: 'fp8' }, [
      tensor('a.weight', 'F8_E4M3', [300, 130]),
      tensor('a.weight_scale', 'BF16', shape),
    ]);
    expect(made!.quantized).toMatchObject({ rowsEach, columnsEach });
  });

  it('are read as blocks where the groups of GPTQ are in order, whatever desc_act and sym say', () => {
    const order = Buffer.from(Int32Array.from({ length: 64 }, (_, c) => c >> 5).buffer);
    const parts = (zeros: number, g: Buffer) => [
      tensor('a.qweight', 'I32', [8, 16]),
      tensor('a.qzeros', 'I32', [2, 2], zeros),
      tensor('a.scales', 'F16', [2, 16]),
      { name: 'a.g_idx', type: 'I32', shape: [64], data: g },
    ];
    const [even] = matrices({ ...GPTQ, desc_act: true, sym: false }, parts(0x77, order));
    expect(even).toMatchObject({ type: 'Q4_0', shape: [16, 64], quantized: { zero: 8 } });
    expect(even!.quantized).not.toHaveProperty('groups');
    const [second] = matrices({ ...GPTQ, checkpoint_format: 'gptq_v2' }, parts(0x77, order));
    expect(second).toMatchObject({ type: 'Q5_0', quantized: { zeros: { order: 'gptq', add: 0 } } });
    const [shuffled] = matrices(
      { ...GPTQ, sym: true },
      parts(0x77, Buffer.from(order).fill(order.subarray(128), 0, 4)),
    );
    expect(shuffled).toMatchObject({ type: 'F32' });
  });

  it('are what config.json says where the weights are not here', () => {
    const file = join(fresh(), 'model.safetensors');
    const parts = [
      tensor('a.qzeros', 'I32', [2, 2]),
      tensor('a.scales', 'F16', [2, 16]),
      tensor('a.g_idx', 'I32', [64]),
    ];
    writeFileSync(file, safetensorsBytes([tensor('a.qweight', 'I32', [8, 16]), ...parts]));
    const typeOf = (more: object) =>
      quantizedTensors(
        readSafetensors(file),
        quantizationOf('config.json', { quantization_config: { ...GPTQ, ...more } }, false)!,
      )[0]!.type;
    expect(typeOf({})).toBe('Q4_0');
    expect(typeOf({ sym: false })).toBe('Q5_0');
    expect(typeOf({ desc_act: true })).toBe('F32');
  });

  it('have the scheme of their group: patterns count before classes', () => {
    const shape = (rows: number, columns: number) =>
      Buffer.from(BigInt64Array.of(BigInt(rows), BigInt(columns)).buffer);
    const packed = (name: string, zeros: boolean, scales: number[]): TestTensor[] => [
      tensor(`${name}.weight_packed`, 'I32', [16, 8]),
      tensor(`${name}.weight_scale`, 'BF16', scales),
      { name: `${name}.weight_shape`, type: 'I64', shape: [2], data: shape(16, 64) },
      ...(zeros ? [tensor(`${name}.weight_zero_point`, 'I32', [2, 2])] : []),
    ];
    const made = matrices(INT4, [...packed('m.down', true, [16, 2]), ...packed('m.up', false, [16, 1])]);
    expect(made.map(({ name, type }) => [name, type])).toEqual([
      ['m.down.weight', 'Q5_0'],
      ['m.up.weight', 'Q4_0'],
    ]);
  });

  it('are a stack for the experts of MXFP4', () => {
    const [made] = matrices({ quant_method: 'mxfp4' }, [
      tensor('mlp.experts.gate_up_proj_blocks', 'U8', [2, 6, 3, 16]),
      tensor('mlp.experts.gate_up_proj_scales', 'U8', [2, 6, 3]),
    ]);
    expect(made).toMatchObject({ name: 'mlp.experts.gate_up_proj', type: 'MXFP4', shape: [2, 6, 96] });
  });

  it('are a stack for the experts of FP8, where gate and up have scales of their own', () => {
    const made = matrices(FP8, [
      tensor('mlp.experts.gate_up_proj', 'F8_E4M3', [2, 512, 130]),
      tensor('mlp.experts.gate_up_proj_scale_inv', 'F32', [2, 4, 2]),
      tensor('mlp.experts.gate_up_proj_activation_scale', 'F32', [2]),
      tensor('mlp.experts.down_proj', 'F8_E4M3', [2, 130, 256]),
      tensor('mlp.experts.down_proj_scale_inv', 'BF16', [2, 2, 2]),
    ]);
    const each = { rowsEach: 128, columnsEach: 128 };
    expect(made).toMatchObject([
      { name: 'mlp.experts.gate_up_proj', type: 'F32', shape: [2, 512, 130], quantized: each },
      { name: 'mlp.experts.down_proj', type: 'F32', shape: [2, 130, 256], quantized: each },
    ]);
    const [whole] = matrices({ quant_method: 'fp8' }, [
      tensor('mlp.experts.gate_up_proj', 'F8_E4M3', [2, 6, 8]),
      tensor('mlp.experts.gate_up_proj_scale_inv', 'F32', [2, 2, 1]),
    ]);
    expect(whole).toMatchObject({ quantized: { rowsEach: 3, columnsEach: 8 } });
  });

  it('leave experts alone that are not quantised', () => {
    const made = matrices(FP8, [
      tensor('mlp.experts.gate_up_proj', 'BF16', [2, 6, 8]),
      tensor('a.weight', 'F8_E4M3', [4, 4]),
      tensor('a.weight_scale', 'F32', [1]),
    ]);
    expect(made.map(({ name, quantized }) => [name, quantized !== undefined])).toEqual([
      ['mlp.experts.gate_up_proj', false],
      ['a.weight', true],
    ]);
  });

  it.each<[what: string, config: object, tensors: TestTensor[], message: RegExp]>([
    [
      'experts of FP8 without scales',
      FP8,
      [tensor('mlp.experts.down_proj', 'F8_E4M3', [2, 4, 4])],
      /mlp\.experts\.down_proj is FP8 and has no scales: expected mlp\.experts\.down_proj_scale_inv\.$/,
    ],
    [
      'experts of FP8 in another shape',
      FP8,
      [
        tensor('mlp.experts.gate_up_proj', 'F8_E4M3', [2, 5, 4]),
        tensor('mlp.experts.gate_up_proj_scale_inv', 'F32', [2, 2, 1]),
      ],
      /gate_up_proj should have the shape \[experts, an even number of rows, columns\], found \[2, 5, 4\]\.$/,
    ],
    [
      'experts of FP8 whose gate and up share a scale',
      FP8,
      [
        tensor('mlp.experts.gate_up_proj', 'F8_E4M3', [2, 384, 128]),
        tensor('mlp.experts.gate_up_proj_scale_inv', 'F32', [2, 3, 1]),
      ],
      /gate_up_proj_scale_inv should have the shape \[2, 4, 1\] or \[2, 2, 1\], for 2 times weights of shape \[384, 128\], found \[2, 3, 1\]\.$/,
    ],
    [
      'scales of experts of another type',
      FP8,
      [
        tensor('mlp.experts.down_proj', 'F8_E4M3', [2, 4, 4]),
        tensor('mlp.experts.down_proj_scale_inv', 'I32', [2, 1, 1]),
      ],
      /down_proj_scale_inv should have a type of scales .*, found I32\.$/,
    ],
    [
      'scales of experts that are not there',
      FP8,
      [tensor('mlp.experts.down_proj_scale_inv', 'F32', [2, 1, 1])],
      /down_proj_scale_inv belongs to quantised weights that are not there/,
    ],
    [
      'no scales',
      FP8,
      [tensor('a.weight', 'F8_E4M3', [4, 4])],
      /tensor a\.weight is FP8 and has no scales: expected a\.weight_scale_inv or/,
    ],
    [
      'scales of another shape',
      FP8,
      [tensor('a.weight', 'F8_E4M3', [300, 130]), tensor('a.weight_scale_inv', 'F32', [2, 2])],
      /tensor a\.weight_scale_inv should have the shape \[3, 2\] or \[300, 1\] or \[1, 1\], for weights of shape \[300, 130\], found \[2, 2\]\.$/,
    ],
    [
      'codes of another type',
      FP8,
      [tensor('a.weight', 'I8', [4, 4]), tensor('a.weight_scale', 'F32', [1])],
      /a\.weight should have the type F8_E4M3, found I8/,
    ],
    [
      'scales of another type',
      FP8,
      [tensor('a.weight', 'F8_E4M3', [4, 4]), tensor('a.weight_scale', 'I32', [1])],
      /a\.weight_scale should have a type of scales .*, found I32/,
    ],
    [
      'scales without codes',
      FP8,
      [tensor('a.weight', 'BF16', [4, 4]), tensor('a.weight_scale', 'F32', [1])],
      /a\.weight_scale belongs to quantised weights that are not there/,
    ],
    ['nothing quantised', FP8, [tensor('a.weight', 'BF16', [4, 4])], /quantised as FP8 .*, but no tensor is/],
    [
      'no zero points',
      GPTQ,
      [tensor('a.qweight', 'I32', [8, 16]), tensor('a.scales', 'F16', [2, 16])],
      /a\.qzeros is missing, which a\.qweight needs/,
    ],
    [
      'other groups',
      GPTQ,
      [
        tensor('a.qweight', 'I32', [8, 16]),
        tensor('a.scales', 'F16', [1, 16]),
        tensor('a.qzeros', 'I32', [1, 2]),
      ],
      /a\.scales should have the shape \[2, 16\], found \[1, 16\]/,
    ],
    [
      'a module of no group',
      { ...INT4, config_groups: { small: INT4.config_groups.small } },
      [tensor('a.weight_packed', 'I32', [16, 8])],
      /a\.weight_packed is quantised, but no group of config_groups has weights for a/,
    ],
    [
      'experts without scales',
      { quant_method: 'mxfp4' },
      [tensor('a_blocks', 'U8', [2, 6, 3, 16])],
      /tensor a_scales is missing, which a_blocks needs/,
    ],
    [
      'blocks of other bytes',
      { quant_method: 'mxfp4' },
      [tensor('a_blocks', 'U8', [6, 3, 8]), tensor('a_scales', 'U8', [6, 3])],
      /a_blocks should have the shape \[6, 3, 16\], found \[6, 3, 8\]/,
    ],
  ])('are refused with %s', (_, config, tensors, message) => {
    expect(() => matrices(config, tensors)).toThrow(message);
  });

  it('bound the steps of patterns that would take for ever', () => {
    const config = structuredClone(INT4) as { config_groups: { small: { targets: string[] } } };
    config.config_groups.small.targets = ['re:(a+)+$'];
    expect(() => matrices(config, [tensor(`${'a'.repeat(40)}!.weight_packed`, 'I32', [16, 8])])).toThrow(
      /takes too many steps/,
    );
  });
});

describe('a folder with quantised weights', () => {
  it('says how they are quantised and what becomes of them', () => {
    const remark = (name: string) => openCheckpoint(writeQuantizedModel(fresh(), name)).remarks;
    expect(remark('gptq')).toEqual([
      'Weights quantised as GPTQ (4 bits, groups of 64): 7 of the matrices keep the numbers of the file.',
    ]);
    expect(remark('fp8-blocks')).toEqual([
      'Weights quantised as FP8 (e4m3, blocks of 32 x 32): 7 of the matrices are rounded to bf16, by at most 1/256 of each weight.',
    ]);
  });

  it('is the same with the experts of a layer in one tensor and with a tensor for each', () => {
    const stacked = writeQuantizedModel(join(fresh(), 'stacked'), 'fp8-experts');
    const apart = writeQuantizedModel(join(fresh(), 'apart'), 'fp8-experts');
    const bytes = readFileSync(join(stacked, 'model.safetensors'));
    const tensors = readSafetensors(join(stacked, 'model.safetensors')).flatMap((one): TestTensor[] => {
      const { name, type, shape, offset, byteLength } = one;
      const data = bytes.subarray(offset, offset + byteLength!);
      const [, block, part, scale] =
        /^(.*\.experts)\.(gate_up_proj|down_proj)((?:_scale_inv)?)$/.exec(name) ?? [];
      if (block === undefined) return [{ name, type, shape, data }];
      const matrices = part === 'down_proj' ? ['down'] : ['gate', 'up'];
      const count = shape[0]! * matrices.length;
      return Array.from({ length: count }, (_, i): TestTensor => {
        const expert = Math.floor(i / matrices.length);
        const own = `${block}.${expert}.${matrices[i % matrices.length]}_proj.weight${scale}`;
        const slice = data.subarray((i * data.length) / count, ((i + 1) * data.length) / count);
        return { name: own, type, shape: [shape[1]! / matrices.length, shape[2]!], data: slice };
      });
    });
    writeFileSync(join(apart, 'model.safetensors'), safetensorsBytes(tensors));
    const shown = (folder: string) => {
      const file = readFileSync(join(folder, 'model.safetensors'));
      const part = ({ offset, byteLength }: { offset: number; byteLength: number }) =>
        file.subarray(offset, offset + byteLength).toString('hex');
      return [...openCheckpoint(folder).tensors]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { type, shape, quantized, ...place }]) => [
          name,
          type,
          shape,
          part(place),
          quantized && [quantized.rowsEach, quantized.columnsEach, part(quantized.scales)],
        ]);
    };
    expect(shown(apart)).toEqual(shown(stacked));
  });

  it('is refused where a matrix has another shape than the network', () => {
    const folder = writeQuantizedModel(fresh(), 'awq');
    const file = join(folder, 'config.json');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('"intermediate_size": 128', '"intermediate_size": 96'),
    );
    expect(() => openCheckpoint(folder)).toThrow(/mlp\.\w+\.weight should have the shape \[/);
  });
});
