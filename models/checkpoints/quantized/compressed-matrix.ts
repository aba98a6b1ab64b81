import type { RawTensor } from '../raw-tensor.js';
import { refuseShape } from '../raw-tensor.js';
import { e4m3Matrix } from './fp8.js';
import { isInOrder } from './integer-words.js';
import { type ModuleTensors, ofType, partOf, sizesOf } from './module-tensors.js';
import { quantizedMatrix } from './quantized-matrix.js';
import type { QuantizedSource, Zeros } from './quantized-source.js';
import { type ScaleBlocks, scalesOf } from './scale-blocks.js';
import type { WeightScheme } from './weight-scheme.js';

type Sizes = [rows: number, columns: number];

/** The matrix of a module that compressed-tensors has quantised. @throws CheckpointError */
export function compressedMatrix(module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const packed = module.get('weight_packed');
  if (packed !== undefined) {
    return scheme.type === 'float' ? fp4Matrix(packed, module, scheme) : packedMatrix(packed, module, scheme);
  }
  const weight = module.get('weight')!;
  if (scheme.type === 'float') {
    const [rows, columns] = sizesOf(weight);
    return e4m3Matrix(module, [blocksOf(scheme, rows, columns)]);
  }
  const sizes = sizesOf(ofType(weight, ['I8']));
  return integerMatrix(weight, module, scheme, sizes, { codes: 'i8', zero: 0 });
}

/** Whole numbers in words of 32 bits, less the half of their range. */
function packedMatrix(codes: RawTensor, module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const { bits } = scheme;
  const [rows, words] = sizesOf(ofType(codes, ['I32']));
  // weight_shape would tell where the last word of a row is not full; no network here has such a matrix.
  const columns = (words * 32) / bits;
  const kind = bits === 4 ? ({ codes: 'u4', zero: 8 } as const) : ({ codes: 'u8', zero: 128 } as const);
  return integerMatrix(codes, module, scheme, [rows, columns], kind);
}

function integerMatrix(
  codes: RawTensor,
  module: ModuleTensors,
  scheme: WeightScheme,
  sizes: Sizes,
  kind: Pick<QuantizedSource, 'codes' | 'zero'>,
): RawTensor {
  const blocks = blocksOf(scheme, ...sizes);
  const scales = scalesOf(module.need('weight_scale', ['F32', 'F16', 'BF16']), sizes, [blocks]);
  const zeros = scheme.isSymmetric ? undefined : zerosOf(module, scheme, sizes, kind.codes);
  const order = module.get('weight_g_idx');
  const groups = order && partOf(ofType(order, ['I32']), [sizes[1]]);
  const isShuffled = order !== undefined && !isInOrder(order, blocks.columnsEach);
  return quantizedMatrix(codes, module, sizes, {
    ...kind,
    order: 'rows',
    ...scales,
    ...(zeros && { zeros }),
    ...(isShuffled && groups && { groups }),
  });
}

function zerosOf(
  module: ModuleTensors,
  scheme: WeightScheme,
  [rows, columns]: Sizes,
  codes: QuantizedSource['codes'],
): Zeros {
  const tensor = module.need('weight_zero_point', ['I32', 'I8']);
  const { rowsEach, columnsEach } = blocksOf(scheme, rows, columns);
  const [down, across] = [Math.ceil(rows / rowsEach), Math.ceil(columns / columnsEach)];
  if (tensor.type === 'I32' && codes !== 'i8') {
    const words = Math.ceil((down * scheme.bits) / 32);
    return { ...partOf(tensor, [words, across]), order: 'packedRows', add: 0 };
  }
  const shape = tensor.shape.length < 2 && across === 1 ? tensor.shape : [down, across];
  if (tensor.byteLength !== down * across) refuseShape(tensor, [down, across]);
  return { ...partOf(ofType(tensor, ['I8']), shape), order: 'bytes', add: 0 };
}

/** FP4: NVFP4 has scales in FP8 for 16 columns, which one number divides; MXFP4 powers of 2 for 32. */
function fp4Matrix(codes: RawTensor, module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const [rows, bytes] = sizesOf(ofType(codes, ['U8']));
  const columns = 2 * bytes;
  const blocks = blocksOf(scheme, rows, columns);
  const layout = { codes: 'e2m1', order: 'rows', zero: 0 } as const;
  if (scheme.strategy !== 'tensor_group') {
    const scale = module.need('weight_scale', ['U8', 'F8_E8M0']);
    return quantizedMatrix(codes, module, [rows, columns], {
      ...layout,
      ...scalesOf(scale, [rows, columns], [blocks]),
    });
  }
  const scale = module.need('weight_scale', ['F8_E4M3']);
  const divisor = module.need('weight_global_scale', ['F32']);
  if (divisor.byteLength !== 4) refuseShape(divisor, [1]);
  return quantizedMatrix(codes, module, [rows, columns], {
    ...layout,
    ...blocks,
    scales: {
      ...partOf(scale, [rows, Math.ceil(columns / blocks.columnsEach)]),
      type: 'F8_E4M3',
      byColumns: false,
    },
    divisor: partOf(divisor, divisor.shape),
  });
}

function blocksOf({ strategy, groupSize, block }: WeightScheme, rows: number, columns: number): ScaleBlocks {
  if (strategy === 'tensor') return { rowsEach: rows, columnsEach: columns };
  if (strategy === 'channel') return { rowsEach: 1, columnsEach: columns };
  if (strategy === 'block') return { rowsEach: block![0], columnsEach: block![1] };
  return { rowsEach: 1, columnsEach: groupSize! };
}
