import { CheckpointError, type TokenizerFiles } from '../checkpoints/checkpoint.js';
import { isObject, type JsonObject } from '../checkpoints/file-reading.js';
import { preTokenization } from './gguf-pre-tokenizers.js';
import { byteLevelJson } from './made-tokenizer-json.js';
import type { AddedTokenJson } from './tokenizer-json.js';

/** Files of a byte-level BPE in GPT-2's form, and those next to it that name its added tokens. */
export interface BpeFiles {
  /** Names vocab.json in errors. */
  file: string;
  vocab: JsonObject;
  merges: string;
  /** added_tokens.json: texts and ids. */
  added: JsonObject;
  /** tokenizer_config.json over special_tokens_map.json. */
  config: JsonObject;
}

/** How texts are cut into words, by the tokenizer's class in transformers, and the special tokens that it takes where no file says. */
const CLASSES: Readonly<Record<string, { words: string; special: JsonObject }>> = {
  GPT2Tokenizer: {
    words: 'gpt-2',
    special: { unk_token: '<|endoftext|>', bos_token: '<|endoftext|>', eos_token: '<|endoftext|>' },
  },
  Qwen2Tokenizer: {
    words: 'qwen2',
    special: { unk_token: '<|endoftext|>', eos_token: '<|endoftext|>', pad_token: '<|endoftext|>' },
  },
};
const ROLES = ['bos_token', 'eos_token', 'unk_token', 'pad_token'];

/** Makes the tokenizer of vocab.json and merges.txt. @throws CheckpointError */
export function tokenizerFromBpeFiles(files: BpeFiles): Omit<TokenizerFiles, 'chatTemplate'> {
  const { file, vocab, config } = files;
  const name = String(config.tokenizer_class ?? 'nothing').replace(/Fast$/, '');
  const kind = Object.hasOwn(CLASSES, name) ? CLASSES[name]! : undefined;
  if (kind === undefined) {
    throw new CheckpointError(
      `${file}: is read together with a tokenizer_config.json whose tokenizer_class is one of ${Object.keys(CLASSES).join(', ')}, found ${name.slice(0, 100)}; a tokenizer.json needs none.`,
    );
  }
  if (config.add_prefix_space === true)
    throw new CheckpointError(`${file}: add_prefix_space is not supported without a tokenizer.json.`);
  const ids = vocabularyOf(file, vocab);
  const tokenizerConfig = { ...kind.special, ...config };
  const tokenizerJson = byteLevelJson(preTokenization(kind.words)!, ids, mergesOf(files), [
    ...addedTokens(files, ids, tokenizerConfig),
  ]);
  return { tokenizerJson, tokenizerConfig };
}

function vocabularyOf(file: string, vocab: JsonObject): Record<string, number> {
  for (const [token, id] of Object.entries(vocab))
    if (!Number.isInteger(id) || (id as number) < 0)
      throw new CheckpointError(
        `${file}: the id of ${JSON.stringify(token).slice(0, 100)} should be a whole number.`,
      );
  return vocab as Record<string, number>;
}

/** Lines of two symbols, after a line on the version. */
function mergesOf({ file, merges }: BpeFiles): [string, string][] {
  const lines = merges.split(/\r?\n/);
  return lines.flatMap((line, i): [string, string][] => {
    if (line === '' || (i === 0 && line.startsWith('#version'))) return [];
    const [left, right, ...more] = line.split(' ');
    if (!left || !right || more.length > 0)
      throw new CheckpointError(`${file}: line ${i + 1} of merges.txt next to it should have two symbols.`);
    return [[left, right]];
  });
}

/** Added tokens by id: those that a file lists, and the special ones that the configuration names. */
function addedTokens(
  { file, added, config }: BpeFiles,
  vocab: Readonly<Record<string, number>>,
  tokenizerConfig: JsonObject,
): AddedTokenJson[] {
  const listed = isObject(config.added_tokens_decoder) ? config.added_tokens_decoder : {};
  const tokens = new Map<string, AddedTokenJson>();
  const add = (content: unknown, id: unknown, fields: JsonObject) => {
    if (typeof content !== 'string' || !Number.isInteger(id) || (id as number) < 0)
      throw new CheckpointError(`${file}: an added token of the files next to it has no text or no id.`);
    tokens.set(content, { ...fields, content, id: id as number, normalized: fields.normalized === true });
  };
  for (const [id, entry] of Object.entries(listed))
    if (isObject(entry)) add(entry.content, Number(id), entry);
  for (const [content, id] of Object.entries(added))
    if (!tokens.has(content)) add(content, id, { special: false });
  const more = tokenizerConfig.additional_special_tokens;
  for (const given of [...ROLES.map((role) => tokenizerConfig[role]), ...(Array.isArray(more) ? more : [])]) {
    const content = isObject(given) ? given.content : given;
    if (typeof content !== 'string') continue;
    const id = tokens.get(content)?.id ?? (Object.hasOwn(vocab, content) ? vocab[content] : undefined);
    if (id !== undefined) add(content, id, { ...tokens.get(content), special: true });
  }
  return [...tokens.values()].sort((a, b) => a.id - b.id);
}
