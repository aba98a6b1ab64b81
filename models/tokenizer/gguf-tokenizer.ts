import { CheckpointError, type TokenizerFiles } from '../checkpoints/checkpoint.js';
import type { GgufMetadata } from '../checkpoints/gguf-metadata.js';
import { knownPreTokenizers, preTokenization } from './gguf-pre-tokenizers.js';
import { byteLevelJson, sentencePieceJson, vocabularyIds } from './made-tokenizer-json.js';
import type { AddedTokenJson, TokenizerJson } from './tokenizer-json.js';

/** Values of tokenizer.ggml.token_type in the GGUF specification, which are those of SentencePiece. */
export const TokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

interface Vocabulary {
  tokens: readonly string[];
  /** Type of each token; null: the file does not say, and all are normal. */
  types: ArrayLike<number> | null;
}

/**
 * Makes the Hugging Face tokenizer that a GGUF file's metadata describes: byte-level BPE ("gpt2") or SentencePiece
 * ("llama"), with its special tokens and chat template.
 *
 * @throws CheckpointError for another kind of tokenizer, an unknown pre-tokenizer or missing lists.
 */
export function tokenizerFromGguf(metadata: GgufMetadata): TokenizerFiles {
  const chatTemplate = metadata.string('tokenizer.chat_template') ?? null;
  // Some converters keep the original tokenizer, which is better than their own description.
  const original = metadata.string('tokenizer.huggingface.json');
  const model = metadata.string('tokenizer.ggml.model');
  if (original === undefined && model !== 'gpt2' && model !== 'llama') {
    throw new CheckpointError(
      `${metadata.file}: tokenizer.ggml.model is ${model === undefined ? 'missing' : `'${model}'`}; ` +
        "supported are 'gpt2' (byte-level BPE) and 'llama' (SentencePiece).",
    );
  }
  const vocabulary = readVocabulary(metadata);
  const built =
    model === 'llama' ? sentencePieceTokenizer(metadata, vocabulary) : bpeTokenizer(metadata, vocabulary);
  const tokenizerJson: unknown = original === undefined ? built.json : parseOriginal(metadata, original);
  return { tokenizerJson, tokenizerConfig: specialTokens(metadata, vocabulary, built.addBos), chatTemplate };
}

function parseOriginal(metadata: GgufMetadata, original: string): unknown {
  try {
    return JSON.parse(original);
  } catch (error) {
    throw new CheckpointError(`${metadata.file}: tokenizer.huggingface.json is not JSON.`, { cause: error });
  }
}

function readVocabulary(metadata: GgufMetadata): Vocabulary {
  const tokens = metadata.strings('tokenizer.ggml.tokens');
  if (tokens === undefined) throw new CheckpointError(`${metadata.file}: tokenizer.ggml.tokens is missing.`);
  const types = metadata.numbers('tokenizer.ggml.token_type') ?? null;
  if (types !== null && types.length !== tokens.length) {
    throw new CheckpointError(
      `${metadata.file}: tokenizer.ggml.token_type has ${types.length} entries for ${tokens.length} tokens.`,
    );
  }
  return { tokens, types };
}

interface BuiltTokenizer {
  json: TokenizerJson;
  addBos: boolean;
}

function bpeTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const name = metadata.string('tokenizer.ggml.pre') ?? 'default';
  const words = preTokenization(name);
  if (words === null) {
    throw new CheckpointError(
      `${metadata.file}: the pre-tokenizer tokenizer.ggml.pre '${name}' is not known; put the model's ` +
        `tokenizer.json beside the file. Known are ${knownPreTokenizers.join(', ')}.`,
    );
  }
  const merges = metadata.strings('tokenizer.ggml.merges');
  if (merges === undefined) throw new CheckpointError(`${metadata.file}: tokenizer.ggml.merges is missing.`);
  const added = addedTokens(metadata, vocabulary);
  const json = byteLevelJson(words, vocabularyIds(vocabulary.tokens), [...merges], added);
  return { json, addBos: words.addBos };
}

function sentencePieceTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const { tokens, types } = vocabulary;
  const scores = metadata.numbers('tokenizer.ggml.scores');
  if (scores === undefined || scores.length !== tokens.length) {
    throw new CheckpointError(
      `${metadata.file}: tokenizer.ggml.scores has ${scores?.length ?? 'no'} entries for ${tokens.length} tokens.`,
    );
  }
  const unknown = metadata.number('tokenizer.ggml.unknown_token_id');
  const json = sentencePieceJson({
    tokens,
    scores,
    isPiece: (id) => types === null || types[id] === TokenType.normal,
    unknown: unknown === undefined ? null : (tokens[unknown] ?? null),
    prefix: (metadata.boolean('tokenizer.ggml.add_space_prefix') ?? true) ? 'each' : 'none',
    added: addedTokens(metadata, vocabulary),
  });
  return { json, addBos: true };
}

/**
 * Added tokens: control and unknown ones are special, user-defined ones are found in any text, unused ones are left
 * out.
 */
function addedTokens(metadata: GgufMetadata, { tokens, types }: Vocabulary): AddedTokenJson[] {
  const added: AddedTokenJson[] = [];
  for (const [id, content] of tokens.entries()) {
    const type = types?.[id] ?? TokenType.normal;
    const special = type === TokenType.control || type === TokenType.unknown;
    if (special || type === TokenType.userDefined) added.push({ id, content, special, normalized: false });
  }
  if (types !== null) return added;
  // In an old file without types, at least the tokens that end and begin a text must not come from a user.
  const ends = ['bos', 'eos'].map((role) => metadata.number(`tokenizer.ggml.${role}_token_id`));
  for (const id of new Set(ends)) {
    const content = id === undefined ? undefined : tokens[id];
    if (id !== undefined && content !== undefined) {
      added.push({ id, content, special: true, normalized: false });
    }
  }
  return added;
}

/** The tokenizer_config.json of the special tokens. */
function specialTokens(
  metadata: GgufMetadata,
  { tokens }: Vocabulary,
  addBosByDefault: boolean,
): Record<string, unknown> {
  const config: Record<string, unknown> = {
    add_bos_token: metadata.boolean('tokenizer.ggml.add_bos_token') ?? addBosByDefault,
    add_eos_token: metadata.boolean('tokenizer.ggml.add_eos_token') ?? false,
  };
  const roles = { bos: 'bos', eos: 'eos', unknown: 'unk', padding: 'pad' };
  for (const [gguf, name] of Object.entries(roles)) {
    const id = metadata.number(`tokenizer.ggml.${gguf}_token_id`);
    if (id === undefined) continue;
    const token = tokens[id];
    if (token === undefined) {
      throw new CheckpointError(
        `${metadata.file}: tokenizer.ggml.${gguf}_token_id is ${id}, the vocabulary has ${tokens.length} tokens.`,
      );
    }
    config[`${name}_token`] = token;
  }
  return config;
}
