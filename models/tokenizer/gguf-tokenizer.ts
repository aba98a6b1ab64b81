import { CheckpointError, type TokenizerFiles } from '../checkpoints/checkpoint.js';
import type { GgufMetadata } from '../checkpoints/gguf-metadata.js';
import { knownPreTokenizers, preTokenization } from './gguf-pre-tokenizers.js';
import {
  byteLevelJson,
  mergedPiecesJson,
  sentencePieceJson,
  unigramJson,
  vocabularyIds,
  wordPieceJson,
} from './made-tokenizer-json.js';
import type { AddedTokenJson, TokenizerJson } from './tokenizer-json.js';

/** Values of tokenizer.ggml.token_type in the GGUF specification, which are those of SentencePiece. */
export const TokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** Kinds of tokenizers by tokenizer.ggml.model. */
const KINDS = new Map<
  string,
  { text: string; make: (metadata: GgufMetadata, one: Vocabulary) => BuiltTokenizer }
>([
  ['gpt2', { text: 'byte-level BPE', make: bpeTokenizer }],
  ['llama', { text: 'SentencePiece', make: sentencePieceTokenizer }],
  ['gemma4', { text: "Gemma's pieces with merges", make: mergedPiecesTokenizer }],
  ['t5', { text: 'Unigram', make: unigramTokenizer }],
  ['bert', { text: 'WordPiece', make: wordPieceTokenizer }],
]);

interface Vocabulary {
  tokens: readonly string[];
  /** Type of each token; null: the file does not say, and all are normal. */
  types: ArrayLike<number> | null;
}

/**
 * Makes the Hugging Face tokenizer that a GGUF file's metadata describes, with its special tokens and chat template.
 *
 * @throws CheckpointError for another kind of tokenizer, an unknown pre-tokenizer or missing lists.
 */
export function tokenizerFromGguf(metadata: GgufMetadata): TokenizerFiles {
  const chatTemplate = metadata.string('tokenizer.chat_template') ?? null;
  // Some converters keep the original tokenizer, which is better than their own description.
  const original = metadata.string('tokenizer.huggingface.json');
  const model = metadata.string('tokenizer.ggml.model');
  const kind = KINDS.get(model ?? (original === undefined ? '' : 'gpt2'));
  if (kind === undefined && original === undefined) {
    const known = [...KINDS].map(([name, { text }]) => `'${name}' (${text})`).join(', ');
    throw new CheckpointError(
      `${metadata.file}: tokenizer.ggml.model is ${model === undefined ? 'missing' : `'${model}'`}; supported are ${known}.`,
    );
  }
  const vocabulary = readVocabulary(metadata);
  const built = (kind?.make ?? bpeTokenizer)(metadata, vocabulary);
  const tokenizerJson: unknown = original === undefined ? built.json : parseOriginal(metadata, original);
  return { tokenizerJson, tokenizerConfig: specialTokens(metadata, vocabulary, built), chatTemplate };
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
  /** Whether BOS and EOS are added, where the file does not say; null: as the tokenizer has it. */
  addBos: boolean | null;
  addEos: boolean | null;
}

function bpeTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const name = metadata.string('tokenizer.ggml.pre') ?? 'default';
  const words = preTokenization(name);
  if (words === null) {
    throw new CheckpointError(
      `${metadata.file}: the pre-tokenizer tokenizer.ggml.pre '${name}' is not known; put the model's ` +
        `tokenizer.json next to the file. Known are ${knownPreTokenizers.join(', ')}.`,
    );
  }
  const added = addedTokens(metadata, vocabulary);
  const json = byteLevelJson(words, vocabularyIds(vocabulary.tokens), mergesOf(metadata), added);
  return { json, addBos: words.addBos, addEos: false };
}

function mergesOf(metadata: GgufMetadata): string[] {
  const merges = metadata.strings('tokenizer.ggml.merges');
  if (merges === undefined) throw new CheckpointError(`${metadata.file}: tokenizer.ggml.merges is missing.`);
  return [...merges];
}

function scoresOf(metadata: GgufMetadata, { tokens }: Vocabulary): ArrayLike<number> {
  const scores = metadata.numbers('tokenizer.ggml.scores');
  if (scores !== undefined && scores.length === tokens.length) return scores;
  throw new CheckpointError(
    `${metadata.file}: tokenizer.ggml.scores has ${scores?.length ?? 'no'} entries for ${tokens.length} tokens.`,
  );
}

/** Id of the token for what the vocabulary has not; null: the file names none. */
function unknownId(metadata: GgufMetadata, { tokens }: Vocabulary): number | null {
  const id = metadata.number('tokenizer.ggml.unknown_token_id') ?? null;
  if (id !== null && tokens[id] === undefined) {
    throw new CheckpointError(
      `${metadata.file}: tokenizer.ggml.unknown_token_id is ${id}, the vocabulary has ${tokens.length} tokens.`,
    );
  }
  return id;
}

function neededUnknownId(metadata: GgufMetadata, vocabulary: Vocabulary): number {
  const id = unknownId(metadata, vocabulary);
  if (id !== null) return id;
  throw new CheckpointError(
    `${metadata.file}: tokenizer.ggml.unknown_token_id, which the tokenizer '${metadata.string('tokenizer.ggml.model')}' needs, is missing.`,
  );
}

function sentencePieceTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const { tokens, types } = vocabulary;
  const unknown = unknownId(metadata, vocabulary);
  const json = sentencePieceJson({
    tokens,
    scores: scoresOf(metadata, vocabulary),
    isPiece: (id) => types === null || types[id] === TokenType.normal,
    unknown: unknown === null ? null : tokens[unknown]!,
    prefix: (metadata.boolean('tokenizer.ggml.add_space_prefix') ?? true) ? 'each' : 'none',
    added: addedTokens(metadata, vocabulary),
  });
  return { json, addBos: true, addEos: false };
}

/** Pieces as SentencePiece has them, with the merges of a BPE. */
function mergedPiecesTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const { tokens } = vocabulary;
  const unknown = unknownId(metadata, vocabulary);
  const json = mergedPiecesJson({
    vocab: vocabularyIds(tokens),
    merges: mergesOf(metadata),
    unknown: unknown === null ? null : tokens[unknown]!,
    added: addedTokens(metadata, vocabulary),
  });
  return { json, addBos: true, addEos: false };
}

function unigramTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const json = unigramJson({
    tokens: vocabulary.tokens,
    scores: scoresOf(metadata, vocabulary),
    unknownId: neededUnknownId(metadata, vocabulary),
    charsMap: charsMap(metadata),
    hasPrefix: metadata.boolean('tokenizer.ggml.add_space_prefix') ?? true,
    removesSpaces: metadata.boolean('tokenizer.ggml.remove_extra_whitespaces') ?? false,
    added: addedTokens(metadata, vocabulary),
  });
  return { json, addBos: false, addEos: true };
}

/** SentencePiece's rules of normalization, as tokenizer.json has them; null: none. */
function charsMap(metadata: GgufMetadata): string | null {
  const key = 'tokenizer.ggml.precompiled_charsmap';
  if (!metadata.has(key)) return null;
  const bytes = metadata.numbers(key);
  if (bytes === undefined) throw new CheckpointError(`${metadata.file}: ${key} should be a list of bytes.`);
  return Buffer.from(Uint8Array.from(bytes)).toString('base64');
}

/** llama.cpp's converter marks the beginnings of words, where BERT's vocabulary marks what goes on: `##ing` is `ing`, and `the` is `\u2581the`. */
function wordPieceTokenizer(metadata: GgufMetadata, vocabulary: Vocabulary): BuiltTokenizer {
  const { types } = vocabulary;
  const tokens = vocabulary.tokens.map((token, id) => {
    if (types !== null && types[id] !== TokenType.normal) return token;
    return token.startsWith('\u2581') ? token.slice(1) : `##${token}`;
  });
  // The converter writes no id of [CLS], which begins a text as BOS does.
  const around = [
    ['cls', 'bos'],
    ['seperator', 'eos'],
  ].map((roles) => {
    const ids = roles.map((role) => metadata.number(`tokenizer.ggml.${role}_token_id`));
    return ids.find((id) => id !== undefined);
  });
  const [cls, sep] = around.map((id) => (id === undefined ? undefined : tokens[id]));
  const json = wordPieceJson({
    vocab: vocabularyIds(tokens),
    unknown: tokens[neededUnknownId(metadata, vocabulary)]!,
    lowercase: metadata.boolean('tokenizer.ggml.normalizer.lowercase') ?? true,
    around:
      cls === undefined || sep === undefined ? null : { cls: [cls, around[0]!], sep: [sep, around[1]!] },
    added: addedTokens(metadata, vocabulary),
  });
  return { json, addBos: null, addEos: null };
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
  { addBos, addEos }: BuiltTokenizer,
): Record<string, unknown> {
  const flag = (role: string, usual: boolean | null) => {
    const added = metadata.boolean(`tokenizer.ggml.add_${role}_token`) ?? usual;
    return added === null ? {} : { [`add_${role}_token`]: added };
  };
  const config: Record<string, unknown> = {
    ...flag('bos', addBos),
    ...flag('eos', addEos),
    ...flag('sep', null),
  };
  const roles = { bos: 'bos', eos: 'eos', unknown: 'unk', padding: 'pad', cls: 'cls', seperator: 'sep' };
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
