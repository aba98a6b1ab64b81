import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { option, says } from '../../base/named-text.js';
import { additionalFolder } from '../tokenizer/named-templates.js';
import { CheckpointError } from './checkpoint.js';
import { fileSystemErrors } from './file-reading.js';
import { ggufParts, modelAmong } from './gguf-parts.js';
import { mmprojFiles } from './mmproj-files.js';
import { PICTURE_FILES } from './picture-file-names.js';
import { QUANTIZATION_FILES } from './quantized/quantization-file.js';
import { safetensorsFiles } from './safetensors-directory.js';
import { SENTENCE_TRANSFORMERS_FILES } from './sentence-transformers.js';
import { TOKEN_LAYER_FILES } from './token-layers.js';
import { OLDER_TOKENIZER_FILES, TOKENIZER_FILES } from './tokenizer-files.js';

/** Files of the model at a path. */
export interface ModelFiles {
  path: string;
  format: 'safetensors' | 'gguf';
  /** Folder of config.json, tokenizer.json and the like. */
  directory: string;
  weights: string[];
  /** GGUFs of the part that sees: the one that was named, or those that lie next to a GGUF; of several none is taken. */
  mmproj: readonly string[];
}

const SIDE_FILES = [
  'config.json',
  'generation_config.json',
  ...PICTURE_FILES,
  'model.safetensors.index.json',
  ...TOKENIZER_FILES,
  ...OLDER_TOKENIZER_FILES,
  ...SENTENCE_TRANSFORMERS_FILES,
  ...QUANTIZATION_FILES,
  ...TOKEN_LAYER_FILES,
];

/**
 * Finds a model's files: a .gguf file, a folder with safetensors, or a folder with exactly one GGUF that is a model. A GGUF may be split.
 *
 * @param mmproj the GGUF of the part that sees; default: what lies next to the model's
 */
export function findModelFiles(path: string, mmproj?: string): ModelFiles {
  return fileSystemErrors(path, () => find(path, mmproj));
}

function find(path: string, mmproj: string | undefined): ModelFiles {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) throw new CheckpointError(`${path}: no such file or folder.`);
  if (!status.isDirectory()) {
    if (/\.gguf$/i.test(path)) return gguf(path, path, mmproj);
    throw new CheckpointError(`${path}: a model is a folder or a .gguf file.`);
  }
  const safetensors = safetensorsFiles(path);
  if (safetensors.length > 0) {
    if (mmproj !== undefined)
      throw new CheckpointError(says`${path}: holds safetensors; ${option('mmproj')} belongs to a GGUF.`);
    return { path, format: 'safetensors', directory: path, weights: safetensors, mmproj: [] };
  }
  const names = readdirSync(path);
  const ggufs = names.filter((name) => /\.gguf$/i.test(name)).sort();
  if (ggufs.length > 0) return gguf(path, modelAmong(path, ggufs), mmproj);
  const pickled = names.find((name) => /\.(bin|pth?|ckpt)$/.test(name));
  const hint = pickled ? ` (${pickled} is no such format: convert it to safetensors)` : '';
  throw new CheckpointError(`${path}: holds neither *.safetensors nor a .gguf file${hint}.`);
}

function gguf(path: string, file: string, mmproj: string | undefined): ModelFiles {
  const directory = dirname(file);
  const seeing = mmproj === undefined ? mmprojFiles(directory) : [mmproj];
  return { path, format: 'gguf', directory, weights: ggufParts(file), mmproj: seeing };
}

/** All existing files of the model, weights last. */
export function allModelFiles(files: ModelFiles): string[] {
  const folder = additionalFolder(files.directory);
  const templates = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : [];
  const beside = [
    ...SIDE_FILES.map((name) => join(files.directory, name)),
    ...templates.filter((name) => name.endsWith('.jinja')).map((name) => join(folder, name)),
  ];
  const present = beside.filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
  return [...present, ...(files.mmproj.length === 1 ? files.mmproj : []), ...files.weights];
}
