import { join } from 'node:path';
import type { EmbeddingHead } from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import { isObject, readJsonObject, readText } from './file-reading.js';

/**
 * Settings in sentence-transformers' own files: how a model's tokens become one embedding, and how long a text may be.
 */
export interface SentenceTransformers {
  pooling: EmbeddingHead['pooling'];
  normalize: boolean;
  /** Most tokens of a text, special tokens included; null: as many as the model has positions for. */
  maxTokens: number | null;
}

/** Files beside config.json. modules.json names the folder of the pooling's own config. */
export const SENTENCE_TRANSFORMERS_FILES = [
  'modules.json',
  'sentence_bert_config.json',
  '1_Pooling/config.json',
] as const;

const MAX_BYTES = 1024 * 1024;
const POOLINGS: Readonly<Record<string, EmbeddingHead['pooling']>> = {
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_cls_token: 'cls',
  pooling_mode_lasttoken: 'last',
};

/**
 * Reads a folder's files; without modules.json the mean over the tokens is used, not normalised, as
 * sentence-transformers does.
 */
export function readSentenceTransformers(directory: string, hiddenSize: number): SentenceTransformers {
  const limits = join(directory, 'sentence_bert_config.json');
  const json = readJsonObject(limits, MAX_BYTES);
  const fields = json && new ConfigFields(limits, json);
  const maxTokens =
    fields?.raw('max_seq_length') === undefined
      ? null
      : fields.integer('max_seq_length', 1, LIMITS.positions);
  return { ...modulesOf(directory, hiddenSize), maxTokens };
}

function modulesOf(
  directory: string,
  hiddenSize: number,
): Pick<SentenceTransformers, 'pooling' | 'normalize'> {
  const file = join(directory, 'modules.json');
  const text = readText(file, MAX_BYTES);
  if (text === null) return { pooling: 'mean', normalize: false };
  let pooling: EmbeddingHead['pooling'] = 'mean';
  let normalize = false;
  for (const { type, path } of moduleList(file, text)) {
    // Newer releases have moved the classes, but the last part of the name has stayed.
    const kind = type.split('.').at(-1);
    if (kind === 'Transformer') continue;
    if (kind === 'Pooling') pooling = poolingOf(join(directory, path, 'config.json'), hiddenSize);
    else if (kind === 'Normalize') normalize = true;
    else {
      throw new CheckpointError(
        `${file}: the module ${type} is not supported; supported: Transformer, Pooling, Normalize.`,
      );
    }
  }
  return { pooling, normalize };
}

function moduleList(file: string, text: string): { type: string; path: string }[] {
  const wrong = () =>
    new CheckpointError(`${file}: should be an array of modules, each with a type and a path.`);
  let modules: unknown;
  try {
    modules = JSON.parse(text);
  } catch {
    throw wrong();
  }
  if (!Array.isArray(modules)) throw wrong();
  return modules.map((entry: unknown) => {
    if (!isObject(entry) || typeof entry.type !== 'string' || typeof entry.path !== 'string') throw wrong();
    return { type: entry.type, path: entry.path };
  });
}

function poolingOf(file: string, hiddenSize: number): EmbeddingHead['pooling'] {
  const json = readJsonObject(file, MAX_BYTES);
  if (json === null) throw new CheckpointError(`${file}: is missing, though modules.json names its folder.`);
  const fields = new ConfigFields(file, json);
  if (fields.raw('word_embedding_dimension') !== undefined) {
    fields.integer('word_embedding_dimension', hiddenSize, hiddenSize);
  }
  const modes = Object.keys(json).filter((key) => key.startsWith('pooling_mode_') && json[key] === true);
  const pooling = POOLINGS[modes[0] ?? 'pooling_mode_mean_tokens'];
  if (modes.length > 1 || pooling === undefined) {
    throw new CheckpointError(
      `${file}: the pooling should be one of ${Object.keys(POOLINGS).join(', ')}; found ${modes.join(' and ')}.`,
    );
  }
  return pooling;
}
