import type { PreTokenization } from './gguf-pre-tokenizers.js';
import type { AddedTokenJson, TokenizerJson } from './tokenizer-json.js';

/** What SentencePiece writes for a space. */
const SPACE = '\u2581';

/** The tokenizer.json of a byte-level BPE that cuts texts by `words`. */
export function byteLevelJson(
  words: PreTokenization,
  vocab: Record<string, number>,
  merges: string[] | [string, string][],
  added: AddedTokenJson[],
): TokenizerJson {
  return {
    added_tokens: added,
    normalizer: words.normalizer,
    pre_tokenizer: words.preTokenizer,
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: words.ignoreMerges,
      vocab,
      merges,
    },
  };
}

/** A SentencePiece vocabulary, which merges by the scores of its pieces. */
export interface SentencePieces {
  tokens: readonly string[];
  scores: ArrayLike<number>;
  /** True for the id of a piece that texts are made of; not for control, byte and user-defined tokens. */
  isPiece(id: number): boolean;
  /** Token for characters that no piece has; null: none. */
  unknown: string | null;
  /** Where a text is encoded as if a space stood before it: at its beginning, after each added token in it too, or nowhere. */
  prefix: 'first' | 'each' | 'none';
  added: AddedTokenJson[];
}

/** The tokenizer.json of a SentencePiece vocabulary of the kind BPE. */
export function sentencePieceJson(pieces: SentencePieces): TokenizerJson {
  const { tokens, scores, isPiece, unknown, prefix, added } = pieces;
  const prepend = { type: 'Prepend', prepend: SPACE };
  const toMetaspace = { type: 'Replace', pattern: { String: ' ' }, content: SPACE };
  const toSpaces = { type: 'Replace', pattern: { String: SPACE }, content: ' ' };
  const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };
  return {
    added_tokens: added,
    normalizer:
      prefix === 'first'
        ? null
        : { type: 'Sequence', normalizers: prefix === 'each' ? [prepend, toMetaspace] : [toMetaspace] },
    pre_tokenizer:
      prefix === 'first'
        ? { type: 'Metaspace', replacement: SPACE, prepend_scheme: 'first', split: false }
        : null,
    post_processor: null,
    decoder: {
      type: 'Sequence',
      decoders: [toSpaces, { type: 'ByteFallback' }, { type: 'Fuse' }, ...(prefix === 'none' ? [] : [strip])],
    },
    model: {
      type: 'BPE',
      unk_token: unknown,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: vocabularyIds(tokens),
      merges: sentencePieceMerges(tokens, scores, isPiece),
    },
  };
}

/** The tokenizer.json of pieces with merges, as Gemma has it: a space is a letter, and characters without a piece are bytes. */
export function mergedPiecesJson(pieces: {
  vocab: Record<string, number>;
  merges: string[];
  unknown: string | null;
  added: AddedTokenJson[];
}): TokenizerJson {
  const { vocab, merges, unknown, added } = pieces;
  return {
    added_tokens: added,
    normalizer: { type: 'Replace', pattern: { String: ' ' }, content: SPACE },
    pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false },
    post_processor: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: SPACE }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
      ],
    },
    model: {
      type: 'BPE',
      unk_token: unknown,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab,
      merges,
    },
  };
}

/** The tokenizer.json of a SentencePiece vocabulary of the kind Unigram, as T5 has it. */
export function unigramJson(pieces: {
  tokens: readonly string[];
  scores: ArrayLike<number>;
  unknownId: number;
  /** SentencePiece's rules of normalization in base64; null: none. */
  charsMap: string | null;
  /** True where a text is encoded as if a space stood before it. */
  hasPrefix: boolean;
  /** True where spaces at the end and all but one of several are left out. */
  removesSpaces: boolean;
  added: AddedTokenJson[];
}): TokenizerJson {
  const { tokens, scores, unknownId, charsMap, hasPrefix, removesSpaces, added } = pieces;
  const normalizers = [
    ...(charsMap === null ? [] : [{ type: 'Precompiled', precompiled_charsmap: charsMap }]),
    ...(removesSpaces
      ? [
          { type: 'Strip', strip_left: false, strip_right: true },
          { type: 'Replace', pattern: { Regex: ' {2,}' }, content: SPACE },
        ]
      : []),
  ];
  const metaspace = {
    type: 'Metaspace',
    replacement: SPACE,
    prepend_scheme: hasPrefix ? 'always' : 'never',
    split: true,
  };
  return {
    added_tokens: added,
    normalizer: normalizers.length === 0 ? null : { type: 'Sequence', normalizers },
    pre_tokenizer: metaspace,
    post_processor: null,
    decoder: metaspace,
    model: {
      type: 'Unigram',
      unk_id: unknownId,
      byte_fallback: false,
      vocab: tokens.map((token, id): [string, number] => [token, scores[id]!]),
    },
  };
}

/** The tokenizer.json of a WordPiece vocabulary, as BERT has it. */
export function wordPieceJson(words: {
  vocab: Record<string, number>;
  unknown: string;
  lowercase: boolean;
  /** Tokens before and after a text, with their ids; null: none. */
  around: { cls: [string, number]; sep: [string, number] } | null;
  added: AddedTokenJson[];
}): TokenizerJson {
  const { vocab, unknown, lowercase, around, added } = words;
  return {
    added_tokens: added,
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase,
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: around === null ? null : { type: 'BertProcessing', ...around },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
    model: {
      type: 'WordPiece',
      unk_token: unknown,
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab,
    },
  };
}

export function vocabularyIds(tokens: readonly string[]): Record<string, number> {
  return Object.fromEntries(tokens.map((token, id) => [token, id]));
}

/**
 * Makes the merges of a SentencePiece BPE vocabulary, which stores only pieces and scores. SentencePiece joins the two
 * neighbours whose union has the best score; so every way to cut a piece into two other pieces is a merge, ranked by
 * the score of the piece. Equal scores go by the longer left part, as in Hugging Face's conversion.
 *
 * @param isPiece true for the id of an ordinary piece; control, byte and user-defined tokens are never merged.
 */
function sentencePieceMerges(
  tokens: readonly string[],
  scores: ArrayLike<number>,
  isPiece: (id: number) => boolean,
): [string, string][] {
  const pieces = new Set(tokens.filter((_, id) => isPiece(id)));
  const merges: { left: string; right: string; score: number }[] = [];
  for (const [id, token] of tokens.entries()) {
    if (!isPiece(id)) continue;
    for (let cut = 1; cut < token.length; cut++) {
      const left = token.slice(0, cut);
      const right = token.slice(cut);
      if (pieces.has(left) && pieces.has(right)) merges.push({ left, right, score: scores[id]! });
    }
  }
  merges.sort(
    (a, b) => b.score - a.score || b.left.length - a.left.length || b.right.length - a.right.length,
  );
  return merges.map(({ left, right }) => [left, right]);
}
