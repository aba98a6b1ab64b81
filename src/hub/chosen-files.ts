import { posix } from 'node:path';
import { closestName } from '../../base/did-you-mean.js';
import { PEFT_FILES } from '../../models/adapters/peft-files.js';
import { partOf, withoutPartNumber } from '../../models/checkpoints/gguf-parts.js';
import { isMmprojName } from '../../models/checkpoints/mmproj-files.js';
import { PICTURE_FILES } from '../../models/checkpoints/picture-file-names.js';
import { QUANTIZATION_FILES } from '../../models/checkpoints/quantized/quantization-file.js';
import { SENTENCE_TRANSFORMERS_FILES } from '../../models/checkpoints/sentence-transformers.js';
import { TOKEN_LAYER_FILES } from '../../models/checkpoints/token-layers.js';
import { OLDER_TOKENIZER_FILES, TOKENIZER_FILES } from '../../models/checkpoints/tokenizer-files.js';
import { ADDITIONAL_FOLDER } from '../../models/tokenizer/named-templates.js';
import { HubError } from '../errors/user-errors.js';
import type { Repository } from './repository.js';

/** Files of a repository that make the wanted model. */
export interface ChosenFiles {
  /** Paths in the repository, small ones first. */
  paths: string[];
  /** Path of the GGUF file to load, the first of several parts; null: the folder is loaded. */
  gguf: string | null;
}

const BESIDE = [
  'config.json',
  'generation_config.json',
  'model.safetensors.index.json',
  ...TOKENIZER_FILES,
  ...SENTENCE_TRANSFORMERS_FILES,
  ...QUANTIZATION_FILES,
  ...TOKEN_LAYER_FILES,
  ...PICTURE_FILES,
];
/** Chat templates of other names. */
const TEMPLATES = new RegExp(`^${ADDITIONAL_FOLDER}/[\\w.-]+\\.jinja$`);
const SHARD = /^model-(\d{5})-of-(\d{5})\.safetensors$/;
const SINGLE = 'model.safetensors';
/** The precision in a file's name, as llama.cpp's tools write it: model-Q4_K_M.gguf, model.q8_0.gguf. */
const QUANT = /[-._]((?:I?Q\d|TQ\d|BF16|F16|F32|FP16|MXFP4|NVFP4)\w*?)(?:-\d{5}-of-\d{5})?\.gguf$/i;
/** Preferred precisions where no QUANT is given: those that keep most of the model at a moderate size come first. */
const PREFERRED = [
  'Q8_0',
  'Q6_K',
  'Q5_K_M',
  'Q4_K_M',
  'Q5_K_S',
  'Q4_K_S',
  'Q5_1',
  'Q5_0',
  'IQ4_XS',
  'IQ4_NL',
  'Q4_1',
  'Q4_0',
  'MXFP4',
  'MXFP4_MOE',
  'BF16',
  'F16',
  'F32',
];

/** Preferred precisions of a tower, which is small. */
const TOWERS = ['F16', 'BF16', 'F32', 'Q8_0'];

/** Chooses the files of a model. @throws HubError where the repository holds no such model. */
export function chooseFiles(all: readonly string[], { id, quant }: Repository): ChosenFiles {
  const templates = all.filter((path) => TEMPLATES.test(path));
  const tokenizer = all.includes('tokenizer.json') ? [] : OLDER_TOKENIZER_FILES;
  const beside = [...[...BESIDE, ...tokenizer].filter((path) => all.includes(path)), ...templates];
  const safetensors = quant === null ? safetensorsOf(all) : [];
  if (safetensors.length > 0) return { paths: [...beside, ...safetensors], gguf: null };
  const ggufs = all.filter((path) => isGguf(path) && !isMmprojName(path)).sort();
  if (ggufs.length > 0) {
    const parts = chooseGguf(ggufs, { id, quant });
    const small = beside.filter((path) => path !== 'model.safetensors.index.json');
    return { paths: [...small, ...towerOf(parts[0]!, all), ...parts], gguf: parts[0]! };
  }
  if (quant !== null) {
    throw new HubError(
      `${id} holds no GGUF file, so :${quant} names nothing in it; ${id} alone names its safetensors.`,
    );
  }
  const pickled = all.find((path) => /\.(bin|pth?|ckpt|onnx)$/.test(path));
  const hint = pickled === undefined ? '' : ` (${pickled} is no such format)`;
  throw new HubError(`${id} holds neither *.safetensors nor a .gguf file${hint}.`);
}

const isGguf = (path: string) => /\.gguf$/i.test(path);

/**
 * The tower next to a GGUF: the only one, or else that of the first of TOWERS that is there. None: the model
 * reads texts alone.
 */
function towerOf(gguf: string, all: readonly string[]): string[] {
  const found = all
    .filter((path) => isMmprojName(path) && posix.dirname(path) === posix.dirname(gguf))
    .sort();
  if (found.length === 1) return found;
  const best = TOWERS.find((quant) => found.some((path) => quantOf(path) === quant));
  return best === undefined ? [] : [found.find((path) => quantOf(path) === best)!];
}

/** Chooses the files of a LoRA adapter: those of PEFT, or a GGUF file. @throws HubError where the repository holds none. */
export function chooseAdapterFiles(all: readonly string[], repository: Repository): ChosenFiles {
  const { id, quant } = repository;
  if (quant === null && PEFT_FILES.every((path) => all.includes(path)))
    return { paths: [...PEFT_FILES], gguf: null };
  const ggufs = all.filter((path) => /\.gguf$/i.test(path)).sort();
  if (ggufs.length > 0) {
    const paths = chooseGguf(ggufs, repository);
    return { paths, gguf: paths[0]! };
  }
  const hint = all.includes('adapter_model.bin')
    ? ' (adapter_model.bin may run code when it is read, and is not)'
    : '';
  throw new HubError(
    `${id} holds neither ${PEFT_FILES.join(' and ')} nor a .gguf file${hint}: no LoRA adapter.`,
  );
}

/** What is wanted of a repository. */
export interface Wanted {
  choose(all: readonly string[], repository: Repository): ChosenFiles;
  /** True where these files of a folder are all that is needed. */
  isComplete(chosen: ChosenFiles): boolean;
}

/** True where files of a folder are all that a model needs, with no part missing. */
export function isComplete({ paths, gguf }: ChosenFiles): boolean {
  if (gguf !== null) {
    const parts = paths.filter((path) => isGguf(path) && !isMmprojName(path));
    return parts.length === partOf(gguf).count;
  }
  if (!paths.includes('config.json')) return false;
  const shards = paths.flatMap((path) => SHARD.exec(path)?.[2] ?? []);
  return shards.length === 0 || shards.length === Number(shards[0]);
}

/** Files of weights: one file, or all its parts; without files of these names all files but adapters. */
function safetensorsOf(all: readonly string[]): string[] {
  if (all.includes(SINGLE)) return [SINGLE];
  const shards = all.filter((path) => SHARD.test(path)).sort();
  if (shards.length > 0) return shards;
  return all.filter((path) => /^(?!adapter_)[^/]+\.safetensors$/.test(path)).sort();
}

/** Precision in the name of a GGUF file; '': it has none. */
export function quantOf(path: string): string {
  return QUANT.exec(path)?.[1]?.toUpperCase() ?? '';
}

/** Path of a GGUF, or of all its parts. */
function chooseGguf(ggufs: readonly string[], { id, quant }: Repository): string[] {
  const wanted = quant === null ? null : quant.toUpperCase();
  const found = wanted === null ? [] : ggufs.filter((path) => quantOf(path) === wanted);
  if (isOneModel(found)) return found;
  if (found.length > 0) {
    throw new HubError(
      `${id} holds ${quant} in ${found.length} files (${found.slice(0, 3).join(', ')}), which are not the parts of one model; download the one you mean and name its path.`,
    );
  }
  const quants = [...new Set(ggufs.map(quantOf))].filter((name) => name !== '');
  if (wanted !== null) {
    const meant = closestName(wanted, quants);
    const hint = meant === null ? '' : ` Did you mean ${id}:${meant}?`;
    throw new HubError(
      `${id} has no GGUF file of ${quant}; it has ${quants.join(', ') || ggufs.slice(0, 10).join(', ')}.${hint}`,
    );
  }
  if (isOneModel(ggufs)) return [...ggufs];
  const best = PREFERRED.find((name) => quants.includes(name));
  if (best !== undefined) return chooseGguf(ggufs, { id, quant: best });
  throw new HubError(
    `${id} has several GGUF files; name one as ${id}:QUANT, of ${quants.join(', ') || ggufs.slice(0, 10).join(', ')}.`,
  );
}

/** True where the files are one model: one file, or parts of one. */
const isOneModel = (ggufs: readonly string[]) => new Set(ggufs.map(withoutPartNumber)).size === 1;

export const A_MODEL: Wanted = { choose: chooseFiles, isComplete };
export const AN_ADAPTER: Wanted = { choose: chooseAdapterFiles, isComplete: () => true };
