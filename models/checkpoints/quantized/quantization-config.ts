import { CheckpointError } from '../checkpoint.js';
import { ConfigFields } from '../config-fields.js';
import { isObject, type JsonObject } from '../file-reading.js';
import { compressedTensorsMethod } from './compressed-tensors.js';
import { fp8Method } from './fp8.js';
import { awqMethod, gptqMethod } from './gptq.js';
import { mxfp4Method } from './mxfp4.js';
import type { QuantizationFile } from './quantization-file.js';
import type { QuantizationMethod } from './quantization-method.js';

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
