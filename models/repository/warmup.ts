import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { DataType, ModelConfig, ModelWarmup } from './model-config.js';
import { type FieldPath, fieldError, type WrittenConfig } from './written-config.js';

/** Samples of a model, times that they are run in all, and bytes of one. */
const MAX_SAMPLES = 64;
const MAX_RUNS = 10_000;
const MAX_BYTES = 256 * 2 ** 20;

/** Folder of the files of samples, in the model's. */
const FOLDER = 'warmup';

type WarmupInput = ModelWarmup['inputs'][string];
type Refuse = (path: FieldPath, rest: string) => never;

/** Samples with everything in them; one of batch size 0 is none, as with Triton. */
export function completeWarmups(written: readonly Partial<ModelWarmup>[] = []): ModelWarmup[] {
  return written.map(({ name = '', batch_size = 0, inputs = {}, count = 0 }) => ({
    name,
    batch_size,
    inputs: Object.fromEntries(
      Object.entries(inputs).map(([input, one]) => [input, { ...one, dims: one.dims ?? [] }]),
    ),
    count,
  }));
}

/** Bytes of the elements of an input's row; a text is empty, with its length of 4 bytes. */
export function bytesOfRow({ data_type: type, dims }: Pick<WarmupInput, 'data_type' | 'dims'>): number {
  return dims.reduce((product, size) => product * size, ELEMENT_BYTES[type]);
}

const ELEMENT_BYTES: Readonly<Record<DataType, number>> = {
  TYPE_BOOL: 1,
  TYPE_INT8: 1,
  TYPE_INT16: 2,
  TYPE_INT32: 4,
  TYPE_INT64: 8,
  TYPE_UINT8: 1,
  TYPE_UINT16: 2,
  TYPE_UINT32: 4,
  TYPE_UINT64: 8,
  TYPE_FP16: 2,
  TYPE_BF16: 2,
  TYPE_FP32: 4,
  TYPE_FP64: 8,
  TYPE_STRING: 4,
};

/** Path of a sample's file. */
export function warmupFile(modelDirectory: string, filename: string): string {
  return join(modelDirectory, FOLDER, filename);
}

/**
 * Holds the samples of a configuration against its inputs and the bounds. @param refuse for a field, with the rest of a sentence that
 * begins with it
 */
export function checkWarmups(config: ModelConfig, refuse: Refuse): void {
  const { model_warmup: samples = [] } = config;
  if (samples.length === 0) return;
  if (config.ensemble_scheduling !== undefined) {
    refuse(['model_warmup'], `can not be specified for ensemble '${config.name}'.`);
  }
  if (samples.length > MAX_SAMPLES) {
    refuse(['model_warmup'], `has ${samples.length} samples; at most ${MAX_SAMPLES} are taken.`);
  }
  const runs = samples.reduce((sum, { count }) => sum + Math.max(1, count), 0);
  if (runs > MAX_RUNS) refuse(['model_warmup'], `asks for ${runs} runs; at most ${MAX_RUNS} are taken.`);
  for (const [i, sample] of samples.entries()) checkSample(config, sample, ['model_warmup', i], refuse);
}

function checkSample(config: ModelConfig, sample: ModelWarmup, path: FieldPath, refuse: Refuse): void {
  const { batch_size: batchSize, inputs, name } = sample;
  const most = Math.max(1, config.max_batch_size);
  if (name === '') refuse([...path, 'name'], 'is missing.');
  if (batchSize > most) {
    refuse(
      [...path, 'batch_size'],
      `is ${batchSize}; a whole number up to ${most} is expected, as max_batch_size is ${config.max_batch_size}.`,
    );
  }
  let bytes = 0;
  for (const [input, one] of Object.entries(inputs)) {
    checkInput(config, input, one, [...path, 'inputs', input], refuse);
    bytes += batchSize * bytesOfRow(one);
  }
  if (bytes > MAX_BYTES) {
    refuse([...path, 'inputs'], `take ${bytes} bytes; at most ${MAX_BYTES} are taken.`);
  }
  const missing = config.input.find((one) => !one.optional && !Object.hasOwn(inputs, one.name));
  if (missing !== undefined) refuse([...path, 'inputs'], `lack '${missing.name}', which the model needs.`);
}

function checkInput(
  config: ModelConfig,
  name: string,
  { data_type, dims, zero_data, random_data, input_data_file: file }: WarmupInput,
  path: FieldPath,
  refuse: Refuse,
): void {
  const known = config.input.find((one) => one.name === name);
  if (known === undefined && !isFilledIn(config, name)) {
    const names = config.input.map((one) => `'${one.name}'`).join(', ');
    refuse(path, `is no input of the model; it has ${names}.`);
  }
  const open = dims.find((size) => !(size >= 1));
  if (open !== undefined) refuse([...path, 'dims'], `has ${open}; a sample says all its sizes.`);
  if (known !== undefined && data_type !== known.data_type) {
    refuse([...path, 'data_type'], `is ${data_type}; the input is of ${known.data_type}.`);
  }
  const fits =
    known === undefined ||
    (dims.length === known.dims.length &&
      dims.every((size, i) => known.dims[i] === -1 || known.dims[i] === size));
  if (!fits) refuse([...path, 'dims'], `is [${dims}]; the input has [${known.dims}].`);
  if (zero_data !== true && random_data !== true && (file ?? '') === '') {
    refuse(path, 'has no data: zero_data, random_data or input_data_file is expected.');
  }
  if (file !== undefined && (file === '.' || file === '..' || /[/\\\0]/.test(file))) {
    refuse(
      [...path, 'input_data_file'],
      `is ${JSON.stringify(file)}; the name of a file in the folder ${FOLDER} is expected.`,
    );
  }
}

/** An input that the server itself gives to the model of a sequence. */
function isFilledIn({ sequence_batching: sequences }: ModelConfig, name: string): boolean {
  return (
    sequences !== undefined &&
    (sequences.control_input?.some((one) => one.name === name) ||
      sequences.state?.some((one) => one.input_name === name))
  );
}

/** Holds the files of samples against what their inputs take. @throws ModelConfigError */
export function checkWarmupFiles(config: ModelConfig, written: WrittenConfig, modelDirectory: string): void {
  for (const [i, { inputs }] of (config.model_warmup ?? []).entries()) {
    for (const [name, input] of Object.entries(inputs)) {
      if (input.input_data_file === undefined) continue;
      const problem = whyNotFile(warmupFile(modelDirectory, input.input_data_file), input);
      if (problem !== null) {
        throw fieldError(written, ['model_warmup', i, 'inputs', name, 'input_data_file'], problem);
      }
    }
  }
}

/** Of texts only the file knows how long they are. A file that is longer than the input is used as far as that goes, as with Triton. */
function whyNotFile(file: string, input: WarmupInput): string | null {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return `is '${input.input_data_file}', but there is no file ${file}.`;
  const { size } = found;
  if (size > MAX_BYTES) return `is ${file}, which has ${size} bytes; at most ${MAX_BYTES} are taken.`;
  const expected = bytesOfRow(input);
  return size >= expected ? null : `is ${file}, which has ${size} bytes; ${expected} are expected.`;
}
