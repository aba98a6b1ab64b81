import type { ConfigFields } from '../config-fields.js';
import { LIMITS } from '../config-fields.js';
import type { RawTensor } from '../raw-tensor.js';
import { everyWord, isInOrder } from './integer-words.js';
import { type ModuleTensors, ofType, partOf, sizesOf } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';
import { quantizedMatrix } from './quantized-matrix.js';
import type { CodeOrder, Scales, ScaleType } from './quantized-source.js';

/** Types of the scales of GPTQ and AWQ. */
const SCALE_TYPES: readonly ScaleType[] = ['F16', 'BF16', 'F32'];

/** What all matrices of a model of GPTQ or AWQ share. */
interface Layout {
  bits: 4 | 8;
  /** Columns of a group; null: all of a row. */
  groupSize: number | null;
  order: Exclude<CodeOrder, 'rows'>;
  /** See Zeros. */
  add: number;
  /** What the configuration says, where the weights are not here to tell; null: they are. */
  told: { isSymmetric: boolean; isShuffled: boolean } | null;
}

/**
 * GPTQ as AutoGPTQ and GPTQModel write it: codes in words of 32 bits along the columns, zero points and scales for each group, and with
 * act-order the group of each column. The first format of its zero points has them less 1. GPTQModel's TorchLinear is the reference.
 */
export function gptqMethod(config: ConfigFields, hasWeights: boolean): QuantizationMethod {
  const bits = bitsOf(config, [4, 8]);
  const groupSize = groupSizeOf(config, 'group_size');
  const format = config.string('checkpoint_format') ?? config.string('format') ?? 'gptq';
  if (format !== 'gptq' && format !== 'gptq_v2')
    throw config.error('checkpoint_format', '"gptq" or "gptq_v2"');
  if (config.raw('is_marlin_format') === true) throw config.error('is_marlin_format', 'false');
  const isShuffled = config.boolean('desc_act', false);
  const told = hasWeights ? null : { isSymmetric: config.boolean('sym', true), isShuffled };
  const layout: Layout = { bits, groupSize, order: 'gptq', add: format === 'gptq' ? 1 : 0, told };
  const actOrder = isShuffled ? ', act-order' : '';
  return {
    label: `GPTQ (${bits} bits, ${groupText(groupSize)}${actOrder})`,
    codes: ['qweight'],
    needed: ['qzeros', 'scales', 'g_idx'],
    unread: [],
    matrix: (module) => packedMatrix(module, layout),
  };
}

/**
 * AWQ as AutoAWQ's version "gemm" writes it: 4 bits in words of 32 along the rows, in an order of its own, with zero points and scales for
 * each group. AutoAWQ's dequantize_gemm is the reference.
 */
export function awqMethod(config: ConfigFields, hasWeights: boolean): QuantizationMethod {
  const bits = bitsOf(config, [4]);
  const groupSize = groupSizeOf(config, config.has('group_size') ? 'group_size' : 'q_group_size');
  const version = (config.string('version') ?? 'gemm').toLowerCase();
  if (version !== 'gemm') throw config.error('version', '"gemm"');
  const told = hasWeights ? null : { isSymmetric: !config.boolean('zero_point', true), isShuffled: false };
  return {
    label: `AWQ (${bits} bits, ${groupText(groupSize)})`,
    codes: ['qweight'],
    needed: ['qzeros', 'scales'],
    unread: [],
    matrix: (module) => packedMatrix(module, { bits, groupSize, order: 'awq', add: 0, told }),
  };
}

const groupText = (groupSize: number | null): string =>
  groupSize === null ? 'a scale for each row' : `groups of ${groupSize}`;

function bitsOf<B extends 4 | 8>(config: ConfigFields, known: readonly B[]): B {
  const bits = config.raw(config.has('bits') ? 'bits' : 'w_bit');
  const found = known.find((one) => one === bits);
  if (found === undefined) throw config.error(config.has('w_bit') ? 'w_bit' : 'bits', known.join(' or '));
  return found;
}

function groupSizeOf(config: ConfigFields, key: string): number | null {
  return config.raw(key) === -1 ? null : config.integer(key, 1, LIMITS.width);
}

function packedMatrix(module: ModuleTensors, { bits, groupSize, order, add, told }: Layout): RawTensor {
  const codes = ofType(module.get('qweight')!, ['I32']);
  const inWord = 32 / bits;
  const [first, second] = sizesOf(codes);
  const [columns, rows] = order === 'gptq' ? [first * inWord, second] : [first, second * inWord];
  const columnsEach = groupSize ?? columns;
  const groups = Math.ceil(columns / columnsEach);
  const scaleTensor = module.need('scales', SCALE_TYPES);
  const scales: Scales = {
    ...partOf(scaleTensor, [groups, rows]),
    type: scaleTensor.type as ScaleType,
    byColumns: true,
  };
  const zeroTensor = module.need('qzeros', ['I32']);
  const zeroPart = partOf(zeroTensor, [groups, Math.ceil(rows / inWord)]);
  const order32 = module.get('g_idx');
  const groupPart = order32 && partOf(ofType(order32, ['I32']), [columns]);
  const isShuffled = order32 !== undefined && (told?.isShuffled ?? !isInOrder(order32, columnsEach));
  const middle = bits === 4 ? 8 : 128;
  return quantizedMatrix(codes, module, [rows, columns], {
    codes: bits === 4 ? 'u4' : 'u8',
    order,
    zero: middle,
    rowsEach: 1,
    columnsEach,
    scales,
    ...(!(told?.isSymmetric ?? areAll(zeroTensor, bits, middle - add)) && {
      zeros: { ...zeroPart, order, add },
    }),
    ...(isShuffled && groupPart && { groups: groupPart }),
  });
}

/** True if all zero points are one number: then the quantisation is symmetric, whatever the configuration says. */
function areAll(zeros: RawTensor, bits: 4 | 8, zero: number): boolean {
  const word = Math.imul(zero, bits === 4 ? 0x11111111 : 0x01010101);
  return everyWord(zeros, (found) => found === word);
}
