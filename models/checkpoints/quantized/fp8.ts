import { CheckpointError } from '../checkpoint.js';
import type { ConfigFields } from '../config-fields.js';
import type { RawTensor } from '../raw-tensor.js';
import { type ModuleTensors, ofType, sizesOf } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';
import { quantizedMatrix } from './quantized-matrix.js';
import { type ScaleBlocks, scalesOf, stackedScales } from './scale-blocks.js';

/**
 * FP8 as DeepSeek and Qwen write it (quant_method fp8): e4m3 with a scale for each block of 128 x 128 (`weight_scale_inv`), or one for a
 * row or a matrix (`weight_scale`). transformers' Fp8Dequantize is the reference: the product in float32.
 */
export function fp8Method(config: ConfigFields): QuantizationMethod {
  const format = config.string('fmt') ?? 'e4m3';
  if (format !== 'e4m3') throw config.error('fmt', '"e4m3"');
  const blocks =
    config.raw('weight_block_size') === undefined ? null : config.positives('weight_block_size', 2);
  if (blocks?.some((size) => !Number.isInteger(size)))
    throw config.error('weight_block_size', 'two whole numbers');
  const [rowsEach, columnsEach] = blocks ?? [];
  const block = blocks === null ? [] : [{ rowsEach: rowsEach!, columnsEach: columnsEach! }];
  return {
    label: blocks === null ? 'FP8 (e4m3)' : `FP8 (e4m3, blocks of ${rowsEach} x ${columnsEach})`,
    codes: ['weight', STACK],
    needed: ['weight_scale_inv', 'weight_scale', `${STACK}_scale_inv`],
    unread: ['input_scale', 'activation_scale', 'input_scale_ub', `${STACK}_activation_scale`],
    split: splitStack,
    matrix: (module) =>
      module.get(STACK) === undefined ? e4m3Matrix(module, block) : expertStack(module, block),
  };
}

/** What a matrix of all experts of a layer is called here: such tensors have no part of their name for it. */
const STACK = 'stack';
const STACK_NAME = /^(.*\.experts\.(?:gate_up_proj|down_proj))((?:_scale_inv|_activation_scale)?)$/;

function splitStack(name: string): [module: string, part: string] | null {
  const [, module, rest] = STACK_NAME.exec(name) ?? [];
  return module === undefined ? null : [module, `${STACK}${rest}`];
}

/**
 * The matrices of all experts of a layer as transformers has them in memory: `gate_up_proj` or `down_proj` [experts, rows, columns], and
 * `_scale_inv` with the scales of each. Gate and up, one above the other, are two matrices with scales of their own.
 */
function expertStack(module: ModuleTensors, blocks: readonly ScaleBlocks[]): RawTensor {
  const stack = ofType(module.get(STACK)!, ['F8_E4M3']);
  const scale = module.get(`${STACK}_scale_inv`);
  if (scale === undefined) {
    throw new CheckpointError(
      `${stack.file}: tensor ${stack.name} is FP8 and has no scales: expected ${module.name}_scale_inv.`,
    );
  }
  const halves = module.name.endsWith('gate_up_proj') ? 2 : 1;
  const { shape } = stack;
  const [experts = 0, all = 0, columns = 0] = shape;
  if (shape.length !== 3 || shape.some((size) => size < 1) || all % halves !== 0) {
    const rows = halves === 2 ? 'an even number of rows' : 'rows';
    throw new CheckpointError(
      `${stack.file}: tensor ${stack.name} should have the shape [experts, ${rows}, columns], found [${shape.join(', ')}].`,
    );
  }
  const rows = all / halves;
  const choices = [...blocks, { rowsEach: rows, columnsEach: columns }];
  const { scales, ...each } = stackedScales(scale, [experts, halves, rows, columns], choices);
  const source = { codes: 'e4m3', order: 'rows', zero: 0, ...each, scales } as const;
  const made = quantizedMatrix(stack, module, [rows, columns], source);
  return { ...made, name: module.name, shape };
}

/** A matrix of FP8. Besides `blocks`, a scale may stand for a row or for all. @throws CheckpointError */
export function e4m3Matrix(module: ModuleTensors, blocks: readonly ScaleBlocks[]): RawTensor {
  const weight = ofType(module.get('weight')!, ['F8_E4M3']);
  const scale = module.get('weight_scale_inv') ?? module.get('weight_scale');
  if (scale === undefined) {
    throw new CheckpointError(
      `${weight.file}: tensor ${weight.name} is FP8 and has no scales: expected ${module.name}.weight_scale_inv or ${module.name}.weight_scale.`,
    );
  }
  const [rows, columns] = sizesOf(weight);
  const choices = [
    ...blocks,
    { rowsEach: 1, columnsEach: columns },
    { rowsEach: rows, columnsEach: columns },
  ];
  return quantizedMatrix(weight, module, [rows, columns], {
    codes: 'e4m3',
    order: 'rows',
    zero: 0,
    ...scalesOf(scale, [rows, columns], choices),
  });
}
