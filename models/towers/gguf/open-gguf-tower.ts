import { basename, dirname } from 'node:path';
import { type Checkpoint, CheckpointError } from '../../checkpoints/checkpoint.js';
import { LIMITS } from '../../checkpoints/config-fields.js';
import { isObject } from '../../checkpoints/file-reading.js';
import { type GgufHeader, readGguf } from '../../checkpoints/gguf.js';
import { GgufKeys } from '../../checkpoints/gguf-keys.js';
import type { RawTensor } from '../../checkpoints/raw-tensor.js';
import type { NamedTensor } from '../../checkpoints/tensor-layout.js';
import { readPictureFiles } from '../../images/picture-files.js';
import type { PictureFiles } from '../../images/preprocess/picture-preprocessor.js';
import { readClips } from '../gemma4-tensors.js';
import { readTower } from '../read-tower.js';
import type { TowerConfig } from '../tower-config.js';
import { networkTensors } from '../tower-tensors.js';
import { levelsOf, shortest } from './projector-fields.js';
import { MERGING_LAYER, PROJECTORS, type Projector } from './projectors.js';
import { towerTensorName } from './tensor-names.js';

/** The text model that a tower's GGUF belongs to. */
export type TextCheckpoint = Pick<Checkpoint, 'path' | 'format' | 'config' | 'tokenizer' | 'mmproj'>;

/** What a tower's GGUF says: its network, its tensors under the network's names, and how pictures are prepared. */
export interface GgufTower {
  file: string;
  config: TowerConfig;
  tensors: Map<string, NamedTensor>;
  pictures: PictureFiles;
}

/**
 * Reads the part that sees of a model that is a GGUF: a GGUF of its own (general.architecture `clip`), as llama.cpp's converter writes it
 * with --mmproj. null: there is none.
 *
 * @throws CheckpointError where there are several, and for one of another model, of a kind that is not supported, or not whole
 */
export function readGgufTower(text: TextCheckpoint): GgufTower | null {
  const [file, ...others] = text.mmproj;
  if (file === undefined) return null;
  if (others.length > 0) throw several(text.mmproj);
  const header = readGguf(file);
  const keys = new GgufKeys(header.metadata, 'clip');
  const projector = projectorOf(header, keys);
  const model = modelOf(keys, projector, text);
  const shapes = new Map(header.tensors.map(({ name, shape }) => [name, shape]));
  const told = projector.read(keys, (name) => shapes.get(name));
  const fields = {
    architectures: [model],
    ...told.config,
    image_token_id: tokenOf(file, projector, text),
    text_config: { rms_norm_eps: shortest(text.config.rmsNormEpsilon) },
  };
  const read = readTower(file, fields.architectures[0]!, fields, text.config.hiddenSize);
  const tensors = namedTensors(header, keys, read);
  const config = read.clips === undefined ? read : { ...read, clips: readClips(tensors, read.numLayers) };
  const beside = readPictureFiles(dirname(file));
  const pictures: PictureFiles = {
    processor: {},
    tokenizer: { ...told.tokenizer, ...text.tokenizer.tokenizerConfig },
    ...beside,
    imageProcessor: beside?.imageProcessor ?? told.imageProcessor,
    config: fields,
  };
  return { file, config, tensors, pictures };
}

const several = (files: readonly string[]) => {
  const names = files.slice(0, 5).map((file) => basename(file));
  return new CheckpointError(
    `${dirname(files[0]!)}: holds ${files.length} GGUF files of towers (${names.join(', ')}); name the one you mean with --mmproj.`,
  );
};

function projectorOf({ file, metadata }: GgufHeader, keys: GgufKeys): Projector {
  const architecture = metadata.string('general.architecture');
  if (architecture !== 'clip')
    throw new CheckpointError(
      `${file}: general.architecture should be clip, as that of a tower, found ${architecture ?? 'nothing'}.`,
    );
  if (keys.boolean('has_vision_encoder') !== true)
    throw new CheckpointError(`${file}: sees no pictures: clip.has_vision_encoder is not true.`);
  const type = keys.string('projector_type') ?? keys.string('vision.projector_type');
  const projector = PROJECTORS.get(type ?? '');
  if (projector !== undefined) return projector;
  throw keys.error('projector_type', `one of ${[...PROJECTORS.keys()].join(', ')}`, type);
}

/** The class of the model. @throws CheckpointError for a file of another model */
function modelOf(
  keys: GgufKeys,
  { model, namesOtherWidth }: Projector,
  { path, config }: TextCheckpoint,
): string {
  const { architecture, hiddenSize, promptLevels = 0 } = config;
  const found = typeof model === 'string' ? model : model[architecture];
  if (found === undefined)
    throw new CheckpointError(
      `${keys.file}: belongs to a text model of ${Object.keys(model).join(', ')}; ${path} is ${architecture}.`,
    );
  const width = keys.integer('vision.projection_dim', 0, LIMITS.width, hiddenSize);
  if (width !== hiddenSize && !namesOtherWidth)
    throw keys.error('vision.projection_dim', `${hiddenSize}, the width of ${path}`, width);
  const levels = levelsOf(keys).length;
  if (levels === promptLevels) return found;
  throw new CheckpointError(
    `${keys.file}: makes ${levels} levels of a picture (clip.vision.is_deepstack_layers), and ${path} adds ${promptLevels}.`,
  );
}

/** Id of the token that stands for a picture's tokens, of the text model's tokenizer. */
function tokenOf(file: string, { token }: Projector, { path, tokenizer }: TextCheckpoint): number {
  const json = tokenizer.tokenizerJson;
  const added: unknown = isObject(json) ? json.added_tokens : undefined;
  const found = Array.isArray(added)
    ? added.find((one) => isObject(one) && one.content === token)
    : undefined;
  if (Number.isSafeInteger(found?.id)) return found.id as number;
  throw new CheckpointError(`${path}: has no token ${token}, which stands for the pictures of ${file}.`);
}

/** A tower's tensors under the network's names; what the network has none for is left out. */
function namedTensors(header: GgufHeader, keys: GgufKeys, config: TowerConfig): Map<string, NamedTensor> {
  const up = header.tensors.find(
    ({ name }) => name === 'v.blk.0.ffn_up.bias' || name === 'v.blk.0.ffn_up.weight',
  );
  const { kind, intermediateSize } = config;
  const options = {
    levels: levelsOf(keys),
    swapsUpAndDown: up !== undefined && up.shape[0] !== intermediateSize,
  };
  const named = new Map<string, NamedTensor>();
  for (const tensor of header.tensors) {
    const name = towerTensorName(tensor.name, kind, options);
    if (name === null) continue;
    for (const [own, one] of converted(name, tensor, header, config)) {
      if (named.has(own)) throw new CheckpointError(`${header.file}: tensor ${own} is there twice.`);
      named.set(own, one);
    }
  }
  return named;
}

/** What the network has of a tensor whose name is the network's, or transformers' for towers whose tensors are converted as its are. */
function converted(
  name: string,
  tensor: RawTensor,
  header: GgufHeader,
  config: TowerConfig,
): [string, NamedTensor][] {
  if (config.kind === 'internvl') return networkTensors(name, tensor, config);
  if (config.kind !== 'gemma4') return [[name, convertedOne(name, tensor, header, config)]];
  return networkTensors(name, tensor.name === PATCHES ? byPixel(tensor) : tensor, config);
}

const PATCHES = 'v.patch_embd.weight';

/** Gemma 4's layer over patches, whose columns are by pixel, and in the file by channel. */
function byPixel(tensor: RawTensor): NamedTensor {
  const [rows = 0, channels = 0, height = 0, width = 0] = tensor.shape;
  const pixels = height * width;
  return { ...tensor, shape: [rows, channels * pixels], interleavedColumns: pixels };
}

function convertedOne(
  name: string,
  tensor: RawTensor,
  header: GgufHeader,
  { kind, numHeads, merge }: TowerConfig,
): NamedTensor {
  const { shape } = tensor;
  switch (tensor.name) {
    case 'v.class_embd':
      return { ...tensor, shape: [1, ...shape] };
    case PATCHES:
      return patches(tensor, header);
    // Gemma 3's linear layer has its columns first, as in the model's own files.
    case 'mm.input_projection.weight':
      return { ...tensor, transposed: true };
    case MERGING_LAYER:
      return { ...tensor, interleavedColumns: merge ** 2 };
  }
  const isPart = /\.attn\.qkv\.(weight|bias)$/.test(name) && /\.attn_q\.(weight|bias)$/.test(tensor.name);
  if (isPart) {
    const others = ['k', 'v'].map((part) => tensor.name.replace('attn_q', `attn_${part}`));
    const size = shape.reduce((product, one) => product * one, 1);
    return byTurns(tensor, others, header, { shape: [3 * shape[0]!, ...shape.slice(1)], run: size });
  }
  // The converter writes Pixtral's queries and keys in the order of llama.cpp's RoPE.
  const turns = kind === 'pixtral' && /\.attention\.[qk]_proj\.weight$/.test(name);
  return turns ? { ...tensor, interleavedHeads: numHeads } : tensor;
}

/**
 * The convolution over patches as a matrix over the numbers of a patch. Files have one tensor for each frame [rows, channels, height,
 * width]; a patch has of each channel all frames.
 */
function patches(first: RawTensor, header: GgufHeader): NamedTensor {
  const [rows = 0, channels = 0, height = 0, width = 0] = first.shape;
  const frame = height * width;
  const second = `${first.name}.1`;
  if (!header.tensors.some(({ name }) => name === second))
    return { ...first, shape: [rows, channels * frame] };
  return byTurns(first, [second], header, { shape: [rows, 2 * channels * frame], run: frame });
}

/** One tensor of several, whose numbers follow by turns. @throws CheckpointError where they are not alike */
function byTurns(
  first: RawTensor,
  names: readonly string[],
  { tensors }: GgufHeader,
  { shape, run }: { shape: number[]; run: number },
): NamedTensor {
  const others = names.map((name) => {
    const other = tensors.find((one) => one.name === name);
    if (other?.type === first.type && other.shape.join() === first.shape.join()) return other;
    const found = other === undefined ? 'none' : `${other.type} [${other.shape.join(', ')}]`;
    throw new CheckpointError(
      `${first.file}: tensor ${name} should be as ${first.name}, ${first.type} [${first.shape.join(', ')}], found ${found}.`,
    );
  });
  return { ...first, shape, byTurns: { run, others } };
}
