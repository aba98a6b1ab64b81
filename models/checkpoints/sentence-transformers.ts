import { join } from 'node:path';
import type { EmbeddingHead, HeadLayer } from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import { isObject, readJsonObject, readText } from './file-reading.js';
import { type LogitScore, moduleFields, readDense, readLogitScore, readPooling } from './sentence-modules.js';

/**
 * Settings in sentence-transformers' own files: how a model's tokens become one embedding or score, and how long a text may be.
 */
export interface SentenceTransformers extends Pick<EmbeddingHead, 'normalize' | 'prompts' | 'defaultPrompt'> {
  /** True where there is a modules.json. */
  hasModules: boolean;
  pooling: EmbeddingHead['pooling'];
  /** What is wrong with a modules.json without Pooling, for a model that embeds; null: nothing. */
  lacksPooling: string | null;
  /** Dense modules, in order. */
  layers: HeadLayer[];
  /** Tokens whose logits make a score; null: the model has no such module. */
  logitScore: LogitScore | null;
  /** Name of the activation of a score; null: there is none in these files. */
  activation: string | null;
  /** Most tokens of a text, special tokens included; null: as many as the model has positions for. */
  maxTokens: number | null;
}

/** Numbers that modules of a folder's modules.json usually have. */
const MODULE_NUMBERS = [1, 2, 3, 4] as const;

/** Files next to config.json. modules.json names the folders of the modules. */
export const SENTENCE_TRANSFORMERS_FILES: readonly string[] = [
  'modules.json',
  'sentence_bert_config.json',
  'config_sentence_transformers.json',
  '1_Pooling/config.json',
  '1_LogitScore/config.json',
  ...MODULE_NUMBERS.flatMap((number) => [`${number}_Dense/config.json`, `${number}_Dense/model.safetensors`]),
];

const MAX_BYTES = 1024 * 1024;
/** Bounds on what config_sentence_transformers.json may say. */
const MAX_PROMPTS = 256;
const MAX_PROMPT_UNITS = 16_384;

/**
 * Reads a folder's files; without modules.json a text's row is that of `usual`, not normalised, as in sentence-transformers.
 * @param usual how rows are pooled where no file says it: the mean, but for models that generate
 */
export function readSentenceTransformers(
  directory: string,
  hiddenSize: number,
  usual: EmbeddingHead['pooling'] = 'mean',
): SentenceTransformers {
  const limits = join(directory, 'sentence_bert_config.json');
  const json = readJsonObject(limits, MAX_BYTES);
  const fields = json && new ConfigFields(limits, json);
  const maxTokens =
    fields?.raw('max_seq_length') === undefined
      ? null
      : fields.integer('max_seq_length', 1, LIMITS.positions);
  return { ...modulesOf(directory, hiddenSize, usual), ...ownConfig(directory), maxTokens };
}

type Modules = Pick<
  SentenceTransformers,
  'hasModules' | 'pooling' | 'lacksPooling' | 'layers' | 'logitScore' | 'normalize'
>;

function modulesOf(directory: string, hiddenSize: number, usual: EmbeddingHead['pooling']): Modules {
  const file = join(directory, 'modules.json');
  const text = readText(file, MAX_BYTES);
  const modules: Modules = {
    hasModules: text !== null,
    pooling: usual,
    lacksPooling: null,
    layers: [],
    logitScore: null,
    normalize: false,
  };
  let width = hiddenSize;
  const list = text === null ? [] : moduleList(file, text);
  const poolings = list.filter(({ type }) => kindOf(type) === 'Pooling').length;
  const found = () => list.map(({ type }) => type).join(', ') || 'none';
  if (poolings > 1) {
    throw new CheckpointError(
      `${file}: there should be one Pooling among the modules, found ${poolings}: ${found()}.`,
    );
  }
  if (poolings === 0 && text !== null)
    modules.lacksPooling = `${file}: a Pooling should be among the modules, which makes one embedding of a text's tokens; found ${found()}.`;
  for (const { type, path } of list) {
    const kind = kindOf(type);
    if (modules.normalize && kind !== 'Normalize') {
      throw new CheckpointError(
        `${file}: the module ${type} stands after Normalize, which should be the last.`,
      );
    }
    if (kind === 'Transformer') continue;
    if (kind === 'Normalize') {
      modules.normalize = true;
      continue;
    }
    if (kind !== 'Pooling' && kind !== 'LogitScore' && kind !== 'Dense') {
      throw new CheckpointError(
        `${file}: the module ${type} is not supported; supported: Transformer, Pooling, Dense, Normalize, LogitScore.`,
      );
    }
    const { fields, modes } = moduleFields(directory, path);
    if (kind === 'Pooling') modules.pooling = readPooling(fields, modes, hiddenSize);
    else if (kind === 'LogitScore') modules.logitScore = readLogitScore(fields);
    else {
      const layer = readDense(fields, path, width);
      modules.layers.push(layer);
      width = layer.width;
    }
  }
  return modules;
}

/** Newer releases have moved the classes, but the last part of the name has stayed. */
const kindOf = (type: string) => type.split('.').at(-1);

/** A path of a module: the names of folders inside of the model's. */
const MODULE_PATH = /^(?:[\w-][\w.-]*)?$/;

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
    if (!MODULE_PATH.test(entry.path)) {
      throw new CheckpointError(
        `${file}: the path of a module should be a folder of the model's, found ${JSON.stringify(entry.path).slice(0, 100)}.`,
      );
    }
    return { type: entry.type, path: entry.path };
  });
}

/** The prompts by task, the name of the one that is used where none is asked for, and the activation of a score. */
function ownConfig(
  directory: string,
): Pick<SentenceTransformers, 'prompts' | 'defaultPrompt' | 'activation'> {
  const file = join(directory, 'config_sentence_transformers.json');
  const json = readJsonObject(file, MAX_BYTES);
  if (json === null) return { prompts: {}, defaultPrompt: null, activation: null };
  const fields = new ConfigFields(file, json);
  const prompts = fields.raw('prompts') ?? {};
  const isText = (text: unknown) => typeof text === 'string' && text.length <= MAX_PROMPT_UNITS;
  const fits =
    isObject(prompts) &&
    Object.keys(prompts).length <= MAX_PROMPTS &&
    Object.values(prompts).every((text) => text === null || isText(text));
  if (!fits) {
    throw fields.error(
      'prompts',
      `at most ${MAX_PROMPTS} texts of ${MAX_PROMPT_UNITS} characters by their names`,
    );
  }
  const given = Object.entries(prompts).filter((entry): entry is [string, string] => entry[1] !== null);
  const defaultPrompt = fields.string('default_prompt_name') ?? null;
  if (defaultPrompt !== null && !given.some(([name]) => name === defaultPrompt)) {
    throw fields.error('default_prompt_name', 'the name of one of the prompts');
  }
  const activation = fields.string('activation_fn') ?? null;
  return { prompts: Object.fromEntries(given), defaultPrompt, activation };
}
