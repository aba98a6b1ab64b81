import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { tokenizerFromBpeFiles } from '../tokenizer/bpe-files.js';
import { tokenizerFromGguf } from '../tokenizer/gguf-tokenizer.js';
import { additionalFolder, type ModelTemplates, modelTemplates } from '../tokenizer/named-templates.js';
import { tokenizerFromSentencePiece } from '../tokenizer/sentencepiece-model.js';
import { CheckpointError, type TokenizerFiles } from './checkpoint.js';
import { isObject, type JsonObject, readBytes, readJsonObject, readText } from './file-reading.js';
import type { GgufMetadata } from './gguf-metadata.js';

export const TOKENIZER_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'chat_template.json',
] as const;

/** Files that make the tokenizer of a folder without tokenizer.json. */
export const OLDER_TOKENIZER_FILES = [
  'vocab.json',
  'merges.txt',
  'added_tokens.json',
  'special_tokens_map.json',
  'tokenizer.model',
] as const;

const MAX_TOKENIZER_BYTES = 128 * 1024 * 1024;
const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Reads the tokenizer of a model: its folder's tokenizer.json, else GGUF's metadata, else older files of the folder. Chat templates come from the folder
 * (see modelTemplates), then the GGUF.
 */
export function readTokenizer(
  directory: string,
  vocabSize: number,
  gguf: GgufMetadata | null,
): TokenizerFiles {
  const file = join(directory, 'tokenizer.json');
  const tokenizerJson = readJsonObject(file, MAX_TOKENIZER_BYTES);
  const configFile = join(directory, 'tokenizer_config.json');
  const config = readJsonObject(configFile, MAX_CONFIG_BYTES);
  const templates = templatesIn(directory, configFile, config);
  if (tokenizerJson === null) {
    const made =
      gguf === null ? otherFiles(directory, config) : { ...tokenizerFromGguf(gguf), file: gguf.file };
    if (isObject(made.tokenizerJson)) checkVocabulary(made.file, made.tokenizerJson, vocabSize);
    return {
      tokenizerJson: made.tokenizerJson,
      tokenizerConfig: { ...made.tokenizerConfig, ...config },
      ...(templates ?? (gguf && ggufTemplates(gguf)) ?? { chatTemplate: made.chatTemplate }),
    };
  }
  checkVocabulary(file, tokenizerJson, vocabSize);
  return {
    tokenizerJson,
    tokenizerConfig: config ?? (gguf ? configFromMetadata(gguf) : {}),
    ...(templates ?? (gguf && ggufTemplates(gguf)) ?? { chatTemplate: null }),
  };
}

/** The tokenizer of a folder without tokenizer.json, in the forms that came before it. */
function otherFiles(directory: string, config: JsonObject | null): TokenizerFiles & { file: string } {
  const path = (name: string) => join(directory, name);
  const object = (name: string) => readJsonObject(path(name), MAX_TOKENIZER_BYTES);
  const [vocab, merges] = [object('vocab.json'), readText(path('merges.txt'), MAX_TOKENIZER_BYTES)];
  if (vocab !== null && merges !== null) {
    const file = path('vocab.json');
    const own = { ...object('special_tokens_map.json'), ...config };
    const files = { file, vocab, merges, added: object('added_tokens.json') ?? {}, config: own };
    return { ...tokenizerFromBpeFiles(files), chatTemplate: null, file };
  }
  const file = path('tokenizer.model');
  const bytes = readBytes(file, MAX_TOKENIZER_BYTES);
  if (bytes !== null)
    return { ...tokenizerFromSentencePiece(file, bytes, config?.legacy === true), chatTemplate: null, file };
  throw new CheckpointError(
    `${directory}: holds no tokenizer.json, no vocab.json with merges.txt, and no tokenizer.model.`,
  );
}

/** The chat templates of a folder; null: it has none. */
function templatesIn(
  directory: string,
  configFile: string,
  config: JsonObject | null,
): ModelTemplates | null {
  const folder = additionalFolder(directory);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.jinja')) : [];
  const additional = names.map((name) => [
    name.slice(0, -'.jinja'.length),
    readText(join(folder, name), MAX_CONFIG_BYTES) ?? '',
  ]);
  try {
    return modelTemplates({
      file: readText(join(directory, 'chat_template.jinja'), MAX_CONFIG_BYTES),
      additional: Object.fromEntries(additional),
      configured: config?.chat_template,
      ofProcessor: readJsonObject(join(directory, 'chat_template.json'), MAX_CONFIG_BYTES)?.chat_template,
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CheckpointError(`${configFile}: ${error.message}.`, { cause: error });
  }
}

/** The chat templates of a GGUF; null: it has none. */
function ggufTemplates(gguf: GgufMetadata): ModelTemplates | null {
  const names = gguf.strings('tokenizer.chat_templates') ?? [];
  const named = names.flatMap((name) => {
    const template = gguf.string(`tokenizer.chat_template.${name}`);
    return template === undefined ? [] : [[name, template]];
  });
  return modelTemplates({
    file: gguf.string('tokenizer.chat_template'),
    additional: Object.fromEntries(named),
  });
}

/** Refuses a vocabulary with tokens beyond the embedding's rows: they could be in a prompt but never be looked up. */
function checkVocabulary(file: string, tokenizer: JsonObject, vocabSize: number): void {
  const model = isObject(tokenizer.model) ? tokenizer.model : {};
  const vocabulary = model.vocab;
  const added = Array.isArray(tokenizer.added_tokens) ? tokenizer.added_tokens.filter(isObject) : [];
  const ids = isObject(vocabulary) ? Object.values(vocabulary) : [];
  let largest = Array.isArray(vocabulary) ? vocabulary.length - 1 : -1;
  for (const id of [...ids, ...added.map((token) => token.id)]) {
    if (typeof id === 'number' && id > largest) largest = id;
  }
  if (largest >= vocabSize) {
    throw new CheckpointError(
      `${file}: has a token with id ${largest}, but the model's vocabulary has ${vocabSize} entries.`,
    );
  }
}

/** The tokenizer_config.json of special tokens that GGUF metadata describes. */
function configFromMetadata(gguf: GgufMetadata): Record<string, unknown> {
  const tokens = gguf.strings('tokenizer.ggml.tokens') ?? [];
  const config: Record<string, unknown> = {};
  for (const [key, name] of [
    ['bos_token', 'bos'],
    ['eos_token', 'eos'],
    ['unk_token', 'unknown'],
    ['pad_token', 'padding'],
  ] as const) {
    const id = gguf.number(`tokenizer.ggml.${name}_token_id`);
    if (id !== undefined && tokens[id] !== undefined) config[key] = tokens[id];
  }
  for (const key of ['add_bos_token', 'add_eos_token'] as const) {
    const value = gguf.boolean(`tokenizer.ggml.${key}`);
    if (value !== undefined) config[key] = value;
  }
  return config;
}
