import { CheckpointError, type TensorLocation } from '../checkpoint.js';
import { ConfigFields } from '../config-fields.js';
import { isObject, type JsonObject } from '../file-reading.js';
import { refuseShape } from '../raw-tensor.js';
import { compressedTensorsMethod } from './compressed-tensors.js';
import { fp8Method } from './fp8.js';
import { awqMethod, gptqMethod } from './gptq.js';
import { ofType, partOf } from './module-tensors.js';
import type { QuantizationFile } from './quantization-file.js';
import type { QuantizationMethod } from './quantization-method.js';
import { type Kept, keptNumbers } from './quantized-blocks.js';
import type { QuantizedSource } from './quantized-source.js';

/** By quant_method. */
const METHODS = new Map<string, (config: ConfigFields, hasWeights: boolean) => QuantizationMethod>([
  ['awq', awqMethod],
  ['compressed-tensors', compressedTensorsMethod],
  ['fp8', fp8Method],
  ['gptq', gptqMethod],
  ['mxfp4', () => mxfp4Method],
]);

const INSTEAD =
  "take the model's original files (--weights int8 or int4 makes them smaller), or a GGUF, AWQ, GPTQ, FP8 or compressed-tensors file of it";

/** Methods that people have files of and that are refused by name, with what they are called. */
const UNREAD = new Map([
  ['auto-round', 'AutoRound in its own format (its exports auto_gptq and auto_awq are read)'],
  ['bitsandbytes', 'bitsandbytes'],
  ['fbgemm_fp8', 'FBGEMM (FP8)'],
  ['modelopt', "NVIDIA's ModelOpt"],
]);

/**
 * How the matrices of a folder are quantised; null where config.json says nothing of it, and no file of its own does.
 *
 * @param ofFile what such a file says, which is used where config.json says nothing
 * @param hasWeights false where a folder has the headers of its files alone: what zero points and orders of columns would tell is then believed of config.json
 * @throws CheckpointError for a method that is not read
 */
export function quantizationOf(
  where: string,
  fields: JsonObject,
  hasWeights = true,
  ofFile: QuantizationFile | null = null,
): QuantizationMethod | null {
  const config = new ConfigFields(where, fields);
  const key = config.raw('quantization_config') === undefined ? 'compression_config' : 'quantization_config';
  const given = config.raw(key);
  if (isOfMlx(config.raw('quantization')) || isOfMlx(given)) {
    throw new CheckpointError(`${where}: the weights are quantised by MLX, which is not read: ${INSTEAD}.`);
  }
  if (given === undefined && ofFile === null) return null;
  if (given !== undefined && !isObject(given)) throw config.error(key, 'an object');
  const own =
    given === undefined
      ? new ConfigFields(ofFile!.file, ofFile!.fields)
      : new ConfigFields(`${where}: ${key}`, given);
  const name = own.string('quant_method');
  const unread = UNREAD.get(name ?? '');
  if (unread !== undefined)
    throw new CheckpointError(
      `${where}: the weights are quantised by ${unread}, which is not read: ${INSTEAD}.`,
    );
  const method = METHODS.get(name ?? '');
  if (method === undefined) throw own.error('quant_method', `one of ${[...METHODS.keys()].join(', ')}`);
  return method(own, hasWeights);
}

/** MLX names no method, only its numbers. */
function isOfMlx(value: unknown): boolean {
  return isObject(value) && value.quant_method === undefined && 'bits' in value && 'group_size' in value;
}

/** Columns that share a scale, and bytes of their codes. */
const GROUP = 32;
const GROUP_BYTES = 16;

/**
 * MXFP4 as gpt-oss stores the experts of a layer: `NAME_blocks` [..., rows, groups, 16] with two codes in a byte, the first one in the lower
 * bits, and `NAME_scales` [..., rows, groups], exponents of 2. transformers' convert_moe_packed_tensors is the reference.
 */
const mxfp4Method: QuantizationMethod = {
  label: 'MXFP4',
  codes: ['blocks'],
  needed: ['scales'],
  unread: [],
  separator: '_',
  matrix: (module) => {
    const blocks = ofType(module.get('blocks')!, ['U8']);
    const scales = module.need('scales', ['U8', 'F8_E8M0']);
    const outer = blocks.shape.slice(0, -2);
    const [groups = 0] = blocks.shape.slice(-2);
    if (outer.length < 1 || outer.length > 2 || blocks.shape.some((size) => size < 1)) {
      throw new CheckpointError(
        `${blocks.file}: tensor ${blocks.name} should have the shape [experts, rows, groups, ${GROUP_BYTES}], found [${blocks.shape.join(', ')}].`,
      );
    }
    refuseShape(blocks, [...outer, groups, GROUP_BYTES]);
    const quantized: QuantizedSource = {
      name: blocks.name,
      codes: 'e2m1',
      order: 'rows',
      zero: 0,
      rowsEach: 1,
      columnsEach: GROUP,
      scales: { ...partOf(scales, [...outer, groups]), type: 'F8_E8M0', byColumns: false },
    };
    return { ...blocks, name: module.name, shape: [...outer, groups * GROUP], type: 'MXFP4', quantized };
  },
};

const TEXTS: Readonly<Record<Kept, string>> = {
  exact: 'keep the numbers of the file',
  scales:
    'keep the numbers of the file but for their scales, which are rounded to half precision by at most 1/2048',
  bf16: 'are rounded to bf16, by at most 1/256 of each weight',
  int8: 'are rounded once more, to 8 bits with a scale for 32 weights',
};

/** A sentence on what becomes of a quantised model's numbers, unless --weights asks for another precision. */
export function quantizationRemark(label: string, tensors: Iterable<TensorLocation>): string {
  const counts = new Map<Kept, number>();
  for (const tensor of tensors) {
    if (tensor.quantized === undefined) continue;
    const kept = keptNumbers(tensor, tensor.quantized);
    counts.set(kept, (counts.get(kept) ?? 0) + 1);
  }
  const parts = [...counts].map(
    ([kept, count], i) => `${count}${i === 0 ? ' of the matrices' : ''} ${TEXTS[kept]}`,
  );
  return `Weights quantised as ${label}: ${parts.join(', ')}.`;
}
