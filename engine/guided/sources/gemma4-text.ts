import {
  alt,
  type CodePoints,
  complement,
  EMPTY,
  type Expr,
  NOTHING,
  normalized,
  repeat,
  rule,
  seq,
  special,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import { exprOfTexts } from '../texts/text-graph.js';
import {
  ANY_TEXT,
  allOf,
  anyOf,
  complementOf,
  sequenceOf,
  type TextSet,
  textsOfLength,
} from '../texts/text-set.js';
import { JSON_NUMBER, jsonRules, textBesides } from './json-text.js';
import type { Notation } from './notation.js';
import { isObject, type JsonValue } from './schema-keywords.js';

/** What stands on both sides of a string. */
const QUOTE = '<|"|>';
/** Names that stand without quotes. */
const BARE_NAME = /^[\p{L}\p{N}_.$-]+$/u;
/** Characters of other names without quotes: all but those that the notation needs, white space and marks. */
const IN_NAME: CodePoints = complement(
  normalized([
    [0, 0x2c],
    [0x3a, 0x40],
    [0x5b, 0x5e],
    [0x60, 0x60],
    [0x7b, 0xa0],
    [0x2000, 0x206f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ]),
);
/** Most characters of a text that are counted one by one. */
const MOST_COUNTED = 256;

const quote = (content: string): TextSet => ({ kind: 'text', text: content });
/** Texts without the quote, which would end them. */
const WITHOUT_QUOTE = complementOf(sequenceOf(ANY_TEXT, quote(QUOTE), ANY_TEXT));
/** Texts behind which another may stand: none of them ends with the first characters of the quote. */
const BEGINS_NO_QUOTE = complementOf(
  sequenceOf(ANY_TEXT, anyOf(...[1, 2, 3, 4].map((length) => quote(QUOTE.slice(0, length))))),
);

/**
 * Values as Gemma 4 writes them: texts without escapes between quotes of their own, names of properties without quotes, no white space, and
 * properties in the order in which its template describes them.
 *
 *   {city:<|"|>Paris<|"|>,days:[1,2],where:{x:null}}
 *
 * @param hasSpecialQuotes true where the quote is a special token of the vocabulary, false where it is text
 */
export function gemma4Notation(hasSpecialQuotes: boolean): Notation {
  return hasSpecialQuotes ? WITH_TOKENS : WITH_TEXTS;
}

function notationOf(name: string, border: Expr): Notation {
  const characters = rule(`${name}-characters`);
  const string = rule(`${name}-string`);
  const object = rule(`${name}-object`);
  const array = rule(`${name}-array`);
  const value = rule(`${name}-value`);
  const quoted = (content: Expr) => seq(border, content, border);
  const textOf = (content: string) => {
    const isWritable = !content.includes(QUOTE) && !/\p{Surrogate}/u.test(content);
    return isWritable ? quoted(text(content)) : NOTHING;
  };
  const key = (property: string) => (BARE_NAME.test(property) ? text(property) : textOf(property));
  const otherKey = (names: Iterable<string>) => textBesides(['', ...names], IN_NAME);
  const literal = (one: JsonValue): Expr => {
    spend(1);
    if (typeof one === 'string') return textOf(one);
    if (Array.isArray(one)) return seq(text('['), ...listed(one.map(literal)), text(']'));
    if (!isObject(one)) return text(JSON.stringify(one));
    const members = Object.entries(one).map(([property, inner]) =>
      seq(key(property), text(':'), literal(inner)),
    );
    return seq(text('{'), ...listed(members), text('}'));
  };
  const rules = () => {
    const member = seq(otherKey([]), text(':'), value);
    const words = ['true', 'false', 'null'].map(text);
    return new Map<string, Expr>([
      ...jsonRules(),
      [`${name}-characters`, exprOfTexts(WITHOUT_QUOTE)!],
      [`${name}-string`, quoted(characters)],
      [`${name}-object`, seq(text('{'), some(member), text('}'))],
      [`${name}-array`, seq(text('['), some(value), text(']'))],
      [`${name}-value`, alt(string, JSON_NUMBER, object, array, ...words)],
    ]);
  };
  return {
    ...{ space: EMPTY, value, object, string, characters, isSorted: true },
    ...{ holds: WITHOUT_QUOTE, mostCounted: MOST_COUNTED, block: MOST_COUNTED },
    ...{ rules, literal, key, otherKey, quoted, stringOf: quoted },
    counted: (least, most) => exprOfTexts(allOf(WITHOUT_QUOTE, BEGINS_NO_QUOTE, textsOfLength(least, most)))!,
    inString: (ranges) => ({ kind: 'chars', ranges }),
  };
}

/** Items with commas between them. */
function listed(items: readonly Expr[]): Expr[] {
  return items.flatMap((item, i) => (i === 0 ? [item] : [text(','), item]));
}

/** Any number of items with commas between them. */
function some(item: Expr): Expr {
  return alt(EMPTY, seq(item, repeat(seq(text(','), item), 0, null)));
}

const WITH_TOKENS = notationOf('gemma4-special', special(QUOTE));
const WITH_TEXTS = notationOf('gemma4', text(QUOTE));
