import { isLinearPattern } from './linear-patterns.js';
import {
  type AddedTokenJson,
  type ComponentJson,
  flattenComponents,
  type ModelJson,
  type TokenizerJson,
} from './tokenizer-json.js';

/** Components of one kind, those of a Sequence each by itself. */
const MAX_COMPONENTS = 16;
/** Times that all components together may lengthen a text. */
const MAX_GROWTH = 96;
/** Units of a vocabulary entry or added token: each is compared at every position. */
const MAX_ENTRY = 1024;
/** The same of a Unigram model, where the entries that begin and those that end at a position are compared with each other. */
const MAX_UNIGRAM_ENTRY = 64;
/** Characters of a word that WordPiece takes apart; it tries each part of each rest. */
const MAX_WORD = 128;

/** Times that a component lengthens a text at most; those that are not here are looked at one by one. */
const GROWTH: Readonly<Record<string, number>> = {
  // U+FDFA alone becomes eighteen characters; other texts stay what they are.
  ...{ NFC: 3, NFD: 4, NFKC: 18, NFKD: 18, Precompiled: 18 },
  ...{ Lowercase: 3, Strip: 1, StripAccents: 1, BertNormalizer: 4 },
  ...{ BertPreTokenizer: 1, Whitespace: 1, WhitespaceSplit: 1, Punctuation: 1, Digits: 1, FixedLength: 1 },
  // A letter for each byte; only the first of them changes anything else than Latin-1.
  ByteLevel: 3,
};

/**
 * Why it is not known that this tokenizer takes time in proportion to a text's length; null where it is. Judges what
 * tokenizer.json says, never by trying: a pattern that takes for ever does so on one text of millions.
 *
 * @param vocabulary the model's entries
 */
export function whyUnproven(json: TokenizerJson, vocabulary: readonly (string | undefined)[]): string | null {
  return (
    unprovenComponents(json.normalizer, 'normalizer') ??
    unprovenComponents(json.pre_tokenizer, 'pre_tokenizer') ??
    unprovenModel(json.model, vocabulary) ??
    unprovenAdded(json.added_tokens)
  );
}

/** The same of one kind of component. @param name what to call it */
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

/** How many times longer a component makes a text, or why that and its time are not known. */
function growthOf(part: ComponentJson): number | string {
  if (part.type === 'Split') return unprovenPattern(part) ?? 1;
  if (part.type === 'Replace') {
    const content = typeof part.content === 'string' ? part.content : '';
    // JavaScript would put the text around the match in its place.
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

function unprovenModel(model: ModelJson, vocabulary: readonly (string | undefined)[]): string | null {
  const isUnigram = model.type === 'Unigram' || Array.isArray(model.vocab);
  const most = isUnigram ? MAX_UNIGRAM_ENTRY : MAX_ENTRY;
  let longest = 0;
  for (const entry of vocabulary) if (entry !== undefined && entry.length > longest) longest = entry.length;
  if (longest > most) return `model.vocab has an entry of ${longest} characters`;
  const word = model.max_input_chars_per_word;
  return typeof word === 'number' && word > MAX_WORD ? `model.max_input_chars_per_word is ${word}` : null;
}

function unprovenAdded(added: readonly AddedTokenJson[]): string | null {
  const long = added.find(({ content }) => content.length > MAX_ENTRY);
  return long === undefined ? null : `added_tokens has one of ${long.content.length} characters`;
}
