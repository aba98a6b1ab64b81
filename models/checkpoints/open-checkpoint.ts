import { join } from 'node:path';
import { option, says } from '../../base/named-text.js';
import type { NetworkPlan } from '../../network/plan.js';
import { mayHaveHead, planNetwork } from '../architectures/index.js';
import type { ModelConfig } from '../model-config.js';
import { type Checkpoint, CheckpointError, type PartLeftAside, type TensorLocation } from './checkpoint.js';
import { ConfigFields } from './config-fields.js';
import { type JsonObject, readExactly, readJsonObject, withFile } from './file-reading.js';
import { type GgufHeader, readGguf } from './gguf.js';
import { configOfGguf } from './gguf-config.js';
import { readGgufParts } from './gguf-parts.js';
import { namedGgufTensors, unreadGgufTensors } from './gguf-tensors.js';
import { addHeadTensors } from './head-tensors.js';
import { configOfHuggingFace } from './huggingface-config.js';
import { findModelFiles, type ModelFiles } from './model-files.js';
import { numberOf } from './one-number.js';
import { quantizationOf, quantizationRemark } from './quantized/quantization-config.js';
import { readQuantizationFile } from './quantized/quantization-file.js';
import { quantizedTensors } from './quantized/quantized-tensors.js';
import { type RawTensor, refuseShape, refuseUnsupportedType } from './raw-tensor.js';
import {
  type RecommendedNames,
  type RecommendedSampling,
  recommendedSampling,
} from './recommended-sampling.js';
import { readSafetensorsDirectory } from './safetensors-directory.js';
import { checkSinkLogits } from './sink-logits.js';
import { sourceHash } from './source-hash.js';
import { type NamedTensor, namedTensors, unreadTensors } from './tensor-layout.js';
import { readTokenizer } from './tokenizer-files.js';
import { leftAsidePart, type UnreadTensor } from './unread-tensors.js';
import { unwrapConfig, unwrapTensorName } from './wrappers.js';
import { withXieluOfGguf, withXieluOfTensors } from './xielu-numbers.js';

const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

export interface OpenOptions {
  hasWeights?: boolean | undefined;
  wantsHead?: boolean | undefined;
  mmproj?: string | undefined;
}

/**
 * Opens a published model and checks it: a folder with config.json and safetensors, a .gguf file, or a folder with
 * exactly one GGUF that is a model; a GGUF may be split. Only headers are read. Throws a CheckpointError that names file, tensor, expected and found.
 *
 * @param hasWeights false where there are headers alone, before holes
 * @param wantsHead true for a model with its head that guesses tokens
 * @param mmproj see findModelFiles
 */
export function openCheckpoint(
  path: string,
  { hasWeights = true, wantsHead = false, mmproj }: OpenOptions = {},
): Checkpoint {
  const files = findModelFiles(path, mmproj);
  const hash = sourceHash(files);
  const generation = generationConfig(files);
  const gguf = files.format === 'gguf' ? readGgufParts(files.weights) : null;
  const { config, ...weights } = gguf
    ? ggufWeights(gguf, generation, files, wantsHead)
    : folderWeights(files, generation, { hasWeights, wantsHead });
  const tokenizer = readTokenizer(files.directory, config.vocabSize, gguf?.metadata ?? null);
  return {
    ...{ path, format: files.format, config, ...weights, tokenizer },
    ...{ mmproj: files.mmproj, sourceHash: hash },
    recommended: (names) => recommendedSampling(names, generation, gguf?.metadata ?? null),
  };
}

type Weights = Pick<Checkpoint, 'config' | 'tensors' | 'leftAside' | 'remarks'>;

function ggufWeights(
  gguf: GgufHeader,
  generation: ConfigFields | null,
  files: ModelFiles,
  wantsHead: boolean,
): Weights {
  const read = withXieluOfGguf(gguf.metadata, configOfGguf(gguf, generation));
  const given: ModelConfig = wantsHead ? { ...read, draftHead: true } : read;
  const raw = namedGgufTensors(gguf, given);
  if (wantsHead) checkHead(raw, given, files);
  const config = withLayerScales(given, raw);
  const plan = planNetwork(config);
  const tensors = checkedTensors(raw, plan, files);
  checkSinkLogits(plan, tensors);
  const leftAside = new LeftAside();
  leftAside.addUnread(unreadGgufTensors(gguf, config, tensors), config);
  const named = gguf.metadata.number(`${gguf.metadata.string('general.architecture')}.context_length`);
  return { config, tensors, leftAside: leftAside.parts, remarks: shorterContext(named, config) };
}

function folderWeights(
  files: ModelFiles,
  generation: ConfigFields | null,
  { hasWeights, wantsHead }: { hasWeights: boolean; wantsHead: boolean },
): Weights {
  const { where, fields, wrapper } = unwrapConfig(...configJson(files));
  const read = configOfHuggingFace(where, fields, generation);
  const given: ModelConfig = wantsHead ? { ...read, draftHead: true } : read;
  const leftAside = new LeftAside();
  const textName = wrapper === null ? undefined : leftAside.textName;
  const method = quantizationOf(where, fields, hasWeights, readQuantizationFile(files.directory));
  const stored = readSafetensorsDirectory(files.directory);
  const raw = namedTensors(method === null ? stored : quantizedTensors(stored, method), given, textName);
  if (wantsHead) checkHead(raw, given, files);
  const ownOutput = hasOwnOutput(raw, given);
  addHeadTensors(raw, given, ownOutput, files.directory);
  const untied = ownOutput ? { ...given, tieWordEmbeddings: false } : given;
  const config = withLayerScales(withXieluOfTensors(files.directory, untied, raw), raw);
  const plan = planNetwork(config);
  const tensors = checkedTensors(raw, plan, files);
  if (hasWeights) checkSinkLogits(plan, tensors);
  // What is tied is read under the embedding's name.
  const known = new Map<string, unknown>(
    config.tieWordEmbeddings ? [...tensors, ['lm_head.weight', null]] : tensors,
  );
  leftAside.addUnread(unreadTensors(raw, known), config);
  const remarks = [
    ...(wrapper === null ? [] : [`${wrapper} runs as the text model inside it.`]),
    ...(ownOutput ? [OWN_OUTPUT] : []),
    ...(method === null ? [] : [quantizationRemark(method.label, tensors.values())]),
    ...shorterContext(fields.max_position_embeddings, config),
  ];
  return { config, tensors, leftAside: leftAside.parts, remarks };
}

/** @throws CheckpointError where there is no head that guesses tokens, or one of several layers, which take turns */
function checkHead(
  raw: ReadonlyMap<string, NamedTensor>,
  { architecture, numLayers }: ModelConfig,
  files: ModelFiles,
): void {
  if (!mayHaveHead(architecture) || !raw.has('mtp.fc.weight')) throw withoutHead(files.path);
  // In safetensors the head's layers are numbered by themselves; here the first is named as the one after the
  // model's.
  const isSecond = (own: string) => OF_HEAD.test(own) || Number(IN_LAYER.exec(own)?.[1] ?? 0) > numLayers;
  const [, second] = [...raw].find(([own]) => isSecond(own)) ?? [];
  if (second === undefined) return;
  throw new CheckpointError(
    `${second.file}: tensor ${second.name} is of a second layer of the head that guesses tokens; heads of one layer are supported.`,
  );
}

const OF_HEAD = /^mtp\.layers\./;
const IN_LAYER = /^model\.layers\.(\d+)\./;

const withoutHead = (path: string) =>
  new CheckpointError(
    says`${path}: has no head that guesses tokens (mtp.* in safetensors, nextn in a GGUF, of Qwen3.5 and Qwen3-Next), which ${option('speculate')} mtp drafts with; leave it out.`,
  );

/** What families do beyond the context that is computed. */
const BEYOND: ReadonlyMap<string, string> = new Map([
  ['ministral3', 'scales queries by their position'],
  ['minicpm', 'attends to chosen blocks'],
]);

/** Where a decoder computes only a part of the context that its makers name. */
function shorterContext(named: unknown, { architecture, maxPositions, encoder }: ModelConfig): string[] {
  if (encoder !== undefined || typeof named !== 'number' || named <= maxPositions) return [];
  return [
    `The context is ${maxPositions} of ${named} tokens: beyond, ${architecture} ${BEYOND.get(architecture)}, which is not supported.`,
  ];
}

const OWN_OUTPUT =
  'lm_head.weight differs from the embedding, although tie_word_embeddings is true: the output layer uses lm_head.weight.';

/** What a model's makers recommend of these settings, without the rest of it. @throws CheckpointError */
export function readRecommendedSampling(names: RecommendedNames, files: ModelFiles): RecommendedSampling {
  const gguf = files.format === 'gguf' ? readGguf(files.weights[0]!).metadata : null;
  return recommendedSampling(names, generationConfig(files), gguf);
}

function generationConfig(files: ModelFiles): ConfigFields | null {
  const file = join(files.directory, 'generation_config.json');
  const json = readJsonObject(file, MAX_CONFIG_BYTES);
  return json && new ConfigFields(file, json);
}

export function configJson(files: ModelFiles): [file: string, json: JsonObject] {
  const file = join(files.directory, 'config.json');
  const json = readJsonObject(file, MAX_CONFIG_BYTES);
  if (!json) throw new CheckpointError(`${files.directory}: holds safetensors, but no config.json.`);
  return [file, json];
}

/** The tensors that the network needs, each of a supported type and of the shape that the network expects. */
export function checkedTensors(
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
  refuseUnsupportedType(tensor);
  refuseShape(tensor, expected);
  return tensor;
}

/** Name of the tensor of a layer's factor, in safetensors and in a GGUF. */
const nameOf = (layer: number) => `model.layers.${layer}.layer_scalar`;

/** The config with the factor that each layer of Gemma 4 has on its output; where files have none it is 1. */
function withLayerScales(config: ModelConfig, tensors: ReadonlyMap<string, RawTensor>): ModelConfig {
  if (config.architecture !== 'gemma4') return config;
  const layerScales = Array.from({ length: config.numLayers }, (_, layer) => {
    const tensor = tensors.get(nameOf(layer));
    const scale = tensor === undefined ? 1 : numberOf(tensor);
    if (Number.isFinite(scale)) return scale;
    throw new CheckpointError(
      `${tensor!.file}: tensor ${tensor!.name} should be a finite number, found ${scale}.`,
    );
  });
  return { ...config, layerScales };
}

/** Bytes that are compared at a time. */
const PIECE_BYTES = 1024 * 1024;
const OUTPUT = 'lm_head.weight';

/**
 * True where a config ties the output layer to the embedding, but the file has another matrix for it. transformers then
 * believes the file, and so do we. Two matrices that are the same are one: some programs write tied weights twice.
 */
function hasOwnOutput(tensors: ReadonlyMap<string, NamedTensor>, config: ModelConfig): boolean {
  const output = tensors.get(OUTPUT);
  const embedding = tensors.get(config.architecture === 'gpt2' ? 'wte.weight' : 'model.embed_tokens.weight');
  if (!config.tieWordEmbeddings || output === undefined || embedding === undefined) return false;
  return !sameBytes(output, embedding);
}

function sameBytes(one: NamedTensor, other: NamedTensor): boolean {
  const { byteLength } = one;
  if (byteLength === null || one.type !== other.type || other.byteLength !== byteLength) return false;
  return withFile(one.file, (oneFd) =>
    withFile(other.file, (otherFd) => {
      const [left, right] = [Buffer.alloc(PIECE_BYTES), Buffer.alloc(PIECE_BYTES)];
      for (let done = 0; done < byteLength; done += PIECE_BYTES) {
        const count = Math.min(PIECE_BYTES, byteLength - done);
        readExactly(one.file, oneFd, left.subarray(0, count), one.offset + done);
        readExactly(other.file, otherFd, right.subarray(0, count), other.offset + done);
        if (!left.subarray(0, count).equals(right.subarray(0, count))) return false;
      }
      return true;
    }),
  );
}

/** Counts the tensors of each part of a model that is left aside. */
class LeftAside {
  readonly #parts = new Map<string, number>();

  /** Name in the text model of a wrapper's tensor; null, counted, for one of another part. */
  readonly textName = (name: string): string | null => {
    const unwrapped = unwrapTensorName(name);
    if ('name' in unwrapped) return unwrapped.name;
    this.#count(unwrapped.part);
    return null;
  };

  /** Counts tensors that nothing reads. @throws CheckpointError for one without which the answers would be others */
  addUnread(tensors: readonly UnreadTensor[], config: ModelConfig): void {
    for (const tensor of tensors) {
      const part = leftAsidePart(tensor, config);
      if (part !== null) this.#count(part);
    }
  }

  get parts(): PartLeftAside[] {
    return [...this.#parts].map(([part, tensors]) => ({ part, tensors }));
  }

  #count(part: string): void {
    this.#parts.set(part, (this.#parts.get(part) ?? 0) + 1);
  }
}
