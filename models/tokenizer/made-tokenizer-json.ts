import type { PreTokenization } from './gguf-pre-tokenizers.js';
import { sentencePieceMerges } from './sentencepiece-merges.js';
import type { AddedTokenJson, TokenizerJson } from './tokenizer-json.js';

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
  const prepend = { type: 'Prepend', prepend: '\u2581' };
  const toMetaspace = { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' };
  const toSpaces = { type: 'Replace', pattern: { String: '\u2581' }, content: ' ' };
  const strip = { type: 'Strip', content: ' ', start: 1, stop: 0 };
  return {
    added_tokens: added,
    normalizer:
      prefix === 'first'
        ? null
        : { type: 'Sequence', normalizers: prefix === 'each' ? [prepend, toMetaspace] : [toMetaspace] },
    pre_tokenizer:
      prefix === 'first'
        ? { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'first', split: false }
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

export function vocabularyIds(tokens: readonly string[]): Record<string, number> {
  return Object.fromEntries(tokens.map((token, id) => [token, id]));
}
