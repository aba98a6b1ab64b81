import { join } from 'node:path';
import { type JsonObject, readJsonObject } from '../file-reading.js';

/**
 * Files in which AutoGPTQ and AutoAWQ described the quantisation before config.json did, and the method of
 * each.
 */
const METHOD_OF_FILE: readonly (readonly [file: string, method: string])[] = [
  ['quantize_config.json', 'gptq'],
  ['quant_config.json', 'awq'],
];

export const QUANTIZATION_FILES = METHOD_OF_FILE.map(([file]) => file);

const MAX_BYTES = 1024 * 1024;

/** What a file says of the quantisation of a folder's matrices. */
export interface QuantizationFile {
  file: string;
  /** The fields that config.json would have as its quantization_config. */
  fields: JsonObject;
}

/**
 * The quantisation that a file of a folder describes; null: there is no such file. @throws CheckpointError
 * for broken JSON
 */
export function readQuantizationFile(directory: string): QuantizationFile | null {
  for (const [name, method] of METHOD_OF_FILE) {
    const file = join(directory, name);
    const json = readJsonObject(file, MAX_BYTES);
    if (json) return { file, fields: { ...json, quant_method: json.quant_method ?? method } };
  }
  return null;
}
