import { bf16Bits } from '../../support/bf16.js';
import { toHalf } from '../../support/quantized.js';

/** A tensor of a matrix in one form; `fill` has its bytes by turns, over and over. */
export interface FormTensor {
  /** What follows the module's name. */
  part: string;
  type: string;
  shape: number[];
  fill: 'codes' | Uint8Array;
}

/** How the matrices of a folder of safetensors are stored, and what config.json says of it. */
export interface MatrixForm {
  quantization: Record<string, unknown> | null;
  /** Tensors of a matrix [rows, columns] whose numbers have the spread columns ** -0.5. */
  tensors(rows: number, columns: number): FormTensor[];
}

/** Columns of a group of GPTQ, AWQ and compressed-tensors' int4, and sides of a block of FP8. */
const GROUP = 128;
/** Spread of codes that are any four bits, any eight bits, any e4m3 and any e2m1. */
const SPREADS = { int4: 4.6, int8: 74, e4m3: 140, e2m1: 2.9 } as const;

const halfOf = (columns: number, codes: keyof typeof SPREADS): Uint8Array =>
  bytesOf16(toHalf(columns ** -0.5 / SPREADS[codes]));
const bf16Of = (columns: number, codes: keyof typeof SPREADS): Uint8Array =>
  bytesOf16(bf16Bits(columns ** -0.5 / SPREADS[codes]));
const bytesOf16 = (word: number): Uint8Array => Uint8Array.of(word & 255, word >> 8);
const same = (byte: number): Uint8Array => Uint8Array.of(byte);

function shapeWords(rows: number, columns: number): Uint8Array {
  return new Uint8Array(BigInt64Array.of(BigInt(rows), BigInt(columns)).buffer);
}

/** compressed-tensors with one group of modules. */
function compressed(format: string, weights: Record<string, unknown>): Record<string, unknown> {
  const config_groups = { group_0: { targets: ['Linear'], weights } };
  return { quant_method: 'compressed-tensors', format, config_groups, ignore: ['lm_head'] };
}

/** Forms of safetensors, as their libraries write them (docs/models.md). */
export const MATRIX_FORMS = {
  bf16: {
    quantization: null,
    tensors: (rows, columns) => [
      { part: 'weight', type: 'BF16', shape: [rows, columns], fill: normals(columns) },
    ],
  },
  fp8: {
    quantization: { quant_method: 'fp8', fmt: 'e4m3', weight_block_size: [GROUP, GROUP] },
    tensors: (rows, columns) => [
      { part: 'weight', type: 'F8_E4M3', shape: [rows, columns], fill: 'codes' },
      {
        part: 'weight_scale_inv',
        type: 'BF16',
        shape: [Math.ceil(rows / GROUP), Math.ceil(columns / GROUP)],
        fill: bf16Of(columns, 'e4m3'),
      },
    ],
  },
  gptq: {
    quantization: { quant_method: 'gptq', bits: 4, group_size: GROUP, desc_act: false, sym: true },
    tensors: (rows, columns) => [
      { part: 'qweight', type: 'I32', shape: [columns / 8, rows], fill: 'codes' },
      { part: 'qzeros', type: 'I32', shape: [columns / GROUP, rows / 8], fill: same(0x77) },
      { part: 'scales', type: 'F16', shape: [columns / GROUP, rows], fill: halfOf(columns, 'int4') },
    ],
  },
  awq: {
    quantization: { quant_method: 'awq', bits: 4, group_size: GROUP, zero_point: true, version: 'gemm' },
    tensors: (rows, columns) => [
      { part: 'qweight', type: 'I32', shape: [columns, rows / 8], fill: 'codes' },
      { part: 'qzeros', type: 'I32', shape: [columns / GROUP, rows / 8], fill: Uint8Array.of(0x87, 0x78) },
      { part: 'scales', type: 'F16', shape: [columns / GROUP, rows], fill: halfOf(columns, 'int4') },
    ],
  },
  'ct-int4': {
    quantization: compressed('pack-quantized', {
      num_bits: 4,
      type: 'int',
      strategy: 'group',
      group_size: GROUP,
    }),
    tensors: (rows, columns) => [
      { part: 'weight_packed', type: 'I32', shape: [rows, columns / 8], fill: 'codes' },
      { part: 'weight_scale', type: 'BF16', shape: [rows, columns / GROUP], fill: bf16Of(columns, 'int4') },
      { part: 'weight_shape', type: 'I64', shape: [2], fill: shapeWords(rows, columns) },
    ],
  },
  'ct-int8': {
    quantization: compressed('int-quantized', { num_bits: 8, type: 'int', strategy: 'channel' }),
    tensors: (rows, columns) => [
      { part: 'weight', type: 'I8', shape: [rows, columns], fill: 'codes' },
      { part: 'weight_scale', type: 'BF16', shape: [rows, 1], fill: bf16Of(columns, 'int8') },
    ],
  },
  'ct-mxfp4': {
    quantization: compressed('mxfp4-pack-quantized', {
      num_bits: 4,
      type: 'float',
      strategy: 'group',
      group_size: 32,
    }),
    tensors: (rows, columns) => [
      { part: 'weight_packed', type: 'U8', shape: [rows, columns / 2], fill: 'codes' },
      {
        part: 'weight_scale',
        type: 'U8',
        shape: [rows, columns / 32],
        fill: same(127 + Math.round(Math.log2(columns ** -0.5 / SPREADS.e2m1))),
      },
    ],
  },
} as const satisfies Record<string, MatrixForm>;

export type MatrixFormName = keyof typeof MATRIX_FORMS;

/** Some numbers of that spread, in bf16: enough of them that no two rows of a matrix are alike. */
export function normals(columns: number): Uint8Array {
  const words = new Uint16Array(65_521);
  for (let i = 0; i < words.length; i++) {
    // Box and Muller's, of a sequence that fills the square evenly.
    const [u, v] = [((i + 1) * 0.754877666) % 1, ((i + 1) * 0.569840296) % 1];
    words[i] = bf16Bits(Math.sqrt(-2 * Math.log(1 - u)) * Math.cos(2 * Math.PI * v) * columns ** -0.5);
  }
  return new Uint8Array(words.buffer);
}
