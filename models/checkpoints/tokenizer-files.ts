import { join } from 'node:path';
import { tokenizerFromGguf } from '../tokenizer/gguf-tokenizer.js';
import { CheckpointError, type TokenizerFiles } from './checkpoint.js';
import { isObject, type JsonObject, readJsonObject, readText } from './file-reading.js';
import type { GgufMetadata } from './gguf-metadata.js';

export const TOKENIZER_FILES = ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'] as const;

const MAX_TOKENIZER_BYTES = 128 * 1024 * 1024;
const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

/**
 * Reads the tokenizer of a model: its folder's tokenizer.json, else GGUF's metadata. The chat template comes from
 * chat_template.jinja, then tokenizer_config.json, then the GGUF.
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
  const template =
    readText(join(directory, 'chat_template.jinja'), MAX_CONFIG_BYTES) ?? templateOf(configFile, config);
  if (tokenizerJson === null) {
    if (gguf === null) throw new CheckpointError(`${directory}: holds no tokenizer.json.`);
    const made = tokenizerFromGguf(gguf);
    if (isObject(made.tokenizerJson)) checkVocabulary(gguf.file, made.tokenizerJson, vocabSize);
    return {
      tokenizerJson: made.tokenizerJson,
      tokenizerConfig: { ...made.tokenizerConfig, ...config },
      chatTemplate: template ?? made.chatTemplate,
    };
  }
  checkVocabulary(file, tokenizerJson, vocabSize);
  return {
    tokenizerJson,
    tokenizerConfig: config ?? (gguf ? configFromMetadata(gguf) : {}),
    chatTemplate: template ?? gguf?.string('tokenizer.chat_template') ?? null,
  };
}

/** The chat template: a string, or the one called "default" of several. */
function templateOf(file: string, config: JsonObject | null): string | null {
  const template = config?.chat_template ?? null;
  if (template === null || typeof template === 'string') return template;
  if (Array.isArray(template)) {
    const named = template.filter(isObject).find((entry) => entry.name === 'default') ?? template[0];
    if (isObject(named) && typeof named.template === 'string') return named.template;
  }
  throw new CheckpointError(`${file}: chat_template should be a string or a list of named templates.`);
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
