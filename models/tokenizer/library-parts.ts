import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { TokenizerError, type TokenizerJson } from './tokenizer-json.js';
import type { LibraryPreTokenizer } from './word-stream.js';

/** Parts of @huggingface/tokenizers that are used: its normalizer, pre-tokenizer and model, in this order. */
export interface LibraryParts {
  normalizer: { normalize(text: string): string } | null;
  pre_tokenizer: LibraryPreTokenizer | null;
  model: LibraryModel;
}

export interface LibraryModel {
  _call(words: string[]): string[];
  vocab: (string | undefined)[];
  tokens_to_ids: Map<string, number>;
  unk_token_id?: number | undefined;
}

/** Entries of a model and their ids. */
export interface Vocabulary {
  /** The largest id plus 1. */
  readonly size: number;
  /** UTF-16 units of the longest entry. */
  readonly longest: number;
  /** The entry with an id; undefined where there is none. */
  textOf(id: number): string | undefined;
  /** The id of an entry; undefined where there is none. */
  idOf(text: string): number | undefined;
}

/** @throws TokenizerError where the library does not take the file */
export function libraryParts(json: TokenizerJson, config: Record<string, unknown>): LibraryParts {
  try {
    const library: unknown = new LibraryTokenizer(json, config);
    return library as LibraryParts;
  } catch (error) {
    const reason = messageOf(error);
    throw new TokenizerError(`tokenizer.json cannot be used: ${asSentence(reason)}`, { cause: error });
  }
}

/** The vocabulary as the library keeps it. */
export function libraryVocabulary({ vocab, tokens_to_ids: ids }: LibraryModel): Vocabulary {
  return {
    size: vocab.length,
    longest: vocab.reduce((most, text) => Math.max(most, text?.length ?? 0), 0),
    textOf: (id) => vocab[id],
    idOf: (text) => ids.get(text),
  };
}
