import { isLinearPattern } from './linear-patterns.js';
import {
  type AddedTokenJson,
  type ComponentJson,
  flattenComponents,
  type ModelJson,
  type TokenizerJson,
} from './tokenizer-json.js';

/** Most components of one kind; those of a Sequence count one by one. */
const MAX_COMPONENTS = 16;
/** Greatest factor by which all components together may lengthen a text. */
const MAX_GROWTH = 96;
/** Longest vocabulary entry or added token, in units: each is compared at every position. */
const MAX_ENTRY = 1024;
/**
 * Longest entry of a Unigram model, where entries that begin and those that end at a position are compared with each
 * other.
 */
const MAX_UNIGRAM_ENTRY = 64;
/** Longest word, in characters, for WordPiece, which tries each part of each rest. */
const MAX_WORD = 128;

/** Greatest factor by which a component lengthens a text; components not listed are examined one by one. */
const GROWTH: Readonly<Record<string, number>> = {
  // U+FDFA alone becomes eighteen characters; other texts stay the same.
  ...{ NFC: 3, NFD: 4, NFKC: 18, NFKD: 18, Precompiled: 18 },
  ...{ Lowercase: 3, Strip: 1, StripAccents: 1, BertNormalizer: 4 },
  ...{ BertPreTokenizer: 1, Whitespace: 1, WhitespaceSplit: 1, Punctuation: 1, Digits: 1, FixedLength: 1 },
  // This makes a letter for each byte; of several, only the first changes anything but Latin-1.
  ByteLevel: 3,
};

/**
 * Why this tokenizer is not known to take time in proportion to a text's length; null where it is. Judged by
 * tokenizer.json alone, never by trying: a pattern that takes for ever does so on one text in millions.
 *
 * @param longest UTF-16 units of the longest entry of the vocabulary
 */
export function whyUnproven(json: TokenizerJson, longest: number): string | null {
  return (
    unprovenComponents(json.normalizer, 'normalizer') ??
    unprovenComponents(json.pre_tokenizer, 'pre_tokenizer') ??
    unprovenModel(json.model, longest) ??
    unprovenAdded(json.added_tokens)
  );
}

/**
 * Why components of one kind are not known to take time in proportion to a text's length; null where they are. @param
 * name name of the component in the reason
 */
export function unprovenComponents(part: ComponentJson | null, name: string): string | null {
  const parts = flattenComponents(part);
  if (parts.length > MAX_COMPONENTS) return `${name} has ${parts.length} components`;
  let growth = 1;
  for (const one of parts) {
    const its = growthOf(one);
    if (typeof its === 'string') return `${name}: ${its}`;
    growth *= its;
  }
  return growth > MAX_GROWTH ? `${name} makes a text up to ${growth} times as long` : null;
}

/** Factor by which a component lengthens a text, or why that or its time is not known. */
function growthOf(part: ComponentJson): number | string {
  if (part.type === 'Split') return unprovenPattern(part) ?? 1;
  if (part.type === 'Replace') {
    const content = typeof part.content === 'string' ? part.content : '';
    // JavaScript would replace $ by the text around the match.
    if (content.includes('$')) return 'the content of its Replace has a $';
    return unprovenPattern(part) ?? Math.max(1, content.length);
  }
  if (part.type === 'Metaspace') {
    return Math.max(1, String(part.replacement ?? '').length, String(part.str_rep ?? '').length);
  }
  if (part.type === 'Prepend') return String(part.prepend).length <= 64 ? 1 : 'its Prepend is long';
  return GROWTH[part.type] ?? `nothing is known of ${part.type}`;
}

function unprovenPattern(part: ComponentJson): string | null {
  const pattern = (part.pattern ?? {}) as { Regex?: unknown; String?: unknown };
  if (typeof pattern.Regex !== 'string') return null;
  if (isLinearPattern(pattern.Regex)) return null;
  return `the pattern ${JSON.stringify(pattern.Regex.slice(0, 60))} of its ${part.type} may take long`;
}

function unprovenModel(model: ModelJson, longest: number): string | null {
  const isUnigram = model.type === 'Unigram' || Array.isArray(model.vocab);
  const most = isUnigram ? MAX_UNIGRAM_ENTRY : MAX_ENTRY;
  if (longest > most) return `model.vocab has an entry of ${longest} characters`;
  const word = model.max_input_chars_per_word;
  return typeof word === 'number' && word > MAX_WORD ? `model.max_input_chars_per_word is ${word}` : null;
}

function unprovenAdded(added: readonly AddedTokenJson[]): string | null {
  const long = added.find(({ content }) => content.length > MAX_ENTRY);
  return long === undefined ? null : `added_tokens has one of ${long.content.length} characters`;
}
