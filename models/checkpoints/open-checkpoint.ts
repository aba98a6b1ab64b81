import { join } from 'node:path';
import type { NetworkPlan } from '../../network/plan.js';
import { planNetwork } from '../architectures/index.js';
import type { ModelConfig } from '../model-config.js';
import { type Checkpoint, CheckpointError, type TensorLocation } from './checkpoint.js';
import { ConfigFields } from './config-fields.js';
import { readJsonObject } from './file-reading.js';
import { type GgufHeader, readGguf } from './gguf.js';
import { configOfGguf } from './gguf-config.js';
import { huggingFaceTensorName, interleavedHeads } from './gguf-tensor-names.js';
import { configOfHuggingFace } from './huggingface-config.js';
import { findModelFiles, type ModelFiles } from './model-files.js';
import { isSupportedType, supportedTensorTypes } from './raw-tensor.js';
import { readSafetensorsDirectory } from './safetensors-directory.js';
import { sourceHash } from './source-hash.js';
import { type NamedTensor, namedTensors } from './tensor-layout.js';
import { readTokenizer } from './tokenizer-files.js';

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Opens a published model and checks it: a folder with config.json and safetensors, a .gguf file, or a folder with
 * exactly one GGUF. Only headers are read. Throws a CheckpointError that names file, tensor, expected and found.
 */
export function openCheckpoint(path: string): Checkpoint {
  const files = findModelFiles(path);
  const hash = sourceHash(files);
  const generation = generationConfig(files);
  const gguf = files.format === 'gguf' ? readGguf(files.weights[0]!) : null;
  const config = gguf ? configOfGguf(gguf, generation) : huggingFaceConfig(files, generation);
  const raw = gguf
    ? translated(gguf, config)
    : namedTensors(readSafetensorsDirectory(files.directory), config);
  const tensors = checkedTensors(raw, planNetwork(config), files);
  if (gguf) checkAllRead(gguf, config, tensors);
  const tokenizer = readTokenizer(files.directory, config.vocabSize, gguf?.metadata ?? null);
  return { path, format: files.format, config, tensors, tokenizer, sourceHash: hash };
}

function generationConfig(files: ModelFiles): ConfigFields | null {
  const file = join(files.directory, 'generation_config.json');
  const json = readJsonObject(file, MAX_CONFIG_BYTES);
  return json && new ConfigFields(file, json);
}

function huggingFaceConfig(files: ModelFiles, generation: ConfigFields | null): ModelConfig {
  const file = join(files.directory, 'config.json');
  const json = readJsonObject(file, MAX_CONFIG_BYTES);
  if (!json) throw new CheckpointError(`${files.directory}: holds safetensors, but no config.json.`);
  return configOfHuggingFace(file, json, generation);
}

/** GGUF's tensors under Hugging Face's names. */
function translated(header: GgufHeader, config: ModelConfig): Map<string, NamedTensor> {
  const tensors = new Map<string, NamedTensor>();
  for (const tensor of header.tensors) {
    const name = huggingFaceTensorName(tensor.name, config.architecture);
    if (tensors.has(name)) throw new CheckpointError(`${header.file}: tensor ${name} is there twice.`);
    const heads = interleavedHeads(name, config);
    tensors.set(name, { ...tensor, ...(heads === undefined ? {} : { interleavedHeads: heads }) });
  }
  return tensors;
}

/** Tensors of layers that old files have and nothing computes with. */
const UNUSED_IN_LAYERS: ReadonlySet<string> = new Set(['attn_rot_embd.weight']);

/**
 * Checks that a GGUF's layers have no tensor that is not read: norms, biases or scales that are left out would make other answers
 * without a word. llama.cpp refuses such files too. Layers beyond the model's, which guess further tokens, are left alone.
 */
function checkAllRead(
  { file, tensors }: GgufHeader,
  { architecture, numLayers }: ModelConfig,
  read: ReadonlyMap<string, TensorLocation>,
): void {
  for (const { name } of tensors) {
    const [, layer, part] = /^blk\.(\d+)\.(.*)$/.exec(name) ?? [];
    if (part === undefined || Number(layer) >= numLayers || UNUSED_IN_LAYERS.has(part)) continue;
    if (read.has(huggingFaceTensorName(name, architecture))) continue;
    throw new CheckpointError(
      `${file}: tensor ${name} is not supported: ${architecture} is computed without it, and the answers would be others.`,
    );
  }
}

/** The tensors that the network needs, each of a supported type and of the shape that the network expects. */
function checkedTensors(
  raw: ReadonlyMap<string, NamedTensor>,
  plan: NetworkPlan,
  files: ModelFiles,
): Map<string, TensorLocation> {
  const where = files.weights.length === 1 ? files.weights[0]! : files.directory;
  const tensors = new Map<string, TensorLocation>();
  const missing: string[] = [];
  for (const weight of plan.weights) {
    for (const source of weight.sources) {
      const tensor = raw.get(source.name);
      const matrix = tensor?.transposed ? [source.columns, source.rows] : [source.rows, source.columns];
      const shape = weight.kind === 'vector' ? [source.columns] : matrix;
      if (tensor) tensors.set(source.name, { ...checkedTensor(tensor, shape), name: source.name });
      else missing.push(source.name);
    }
  }
  if (missing.length > 0) {
    const others = missing.length > 1 ? ` and ${missing.length - 1} more` : '';
    throw new CheckpointError(
      `${where}: tensor ${missing[0]}${others} that the configuration calls for is missing.`,
    );
  }
  return tensors;
}

function checkedTensor(tensor: NamedTensor, expected: readonly number[]): TensorLocation {
  const { file, name, type, shape, byteLength } = tensor;
  if (!isSupportedType(type) || byteLength === null) {
    throw new CheckpointError(
      `${file}: tensor ${name} has type ${type}; supported: ${supportedTensorTypes.join(', ')}.`,
    );
  }
  if (shape.length !== expected.length || shape.some((dimension, i) => dimension !== expected[i])) {
    throw new CheckpointError(
      `${file}: tensor ${name} should have the shape [${expected.join(', ')}], found [${shape.join(', ')}].`,
    );
  }
  return { ...tensor, type, byteLength };
}
