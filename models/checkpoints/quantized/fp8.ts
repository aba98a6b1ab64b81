import { CheckpointError } from '../checkpoint.js';
import type { ConfigFields } from '../config-fields.js';
import type { RawTensor } from '../raw-tensor.js';
import { type ModuleTensors, ofType, sizesOf } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';
import { quantizedMatrix } from './quantized-matrix.js';
import { type ScaleBlocks, scalesOf } from './scale-blocks.js';

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
    codes: ['weight'],
    needed: ['weight_scale_inv', 'weight_scale'],
    unread: ['input_scale', 'activation_scale', 'input_scale_ub'],
    matrix: (module) => e4m3Matrix(module, block),
  };
}

/** A matrix of FP8. Beside `blocks`, a scale may stand for a row or for all. @throws CheckpointError */
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
