import {
  alt,
  type CodePoints,
  complement,
  EMPTY,
  type Expr,
  type GraphEdge,
  NOTHING,
  normalized,
  repeat,
  rule,
  seq,
  special,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import { ANY_TEXT, complementOf, sequenceOf } from '../texts/text-set.js';
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
const MAX_COUNTED = 256;

/** Texts without the quote, which would end them. */
const WITHOUT_QUOTE = complementOf(sequenceOf(ANY_TEXT, { kind: 'text', text: QUOTE }, ANY_TEXT));

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
  const textOf = (content: string) => (whyNoText(content) === null ? quoted(text(content)) : NOTHING);
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
      [`${name}-characters`, withoutQuote(0, null, true)],
      [`${name}-string`, quoted(characters)],
      [`${name}-object`, seq(text('{'), some(member), text('}'))],
      [`${name}-array`, seq(text('['), some(value), text(']'))],
      [`${name}-value`, alt(string, JSON_NUMBER, object, array, ...words)],
    ]);
  };
  return {
    ...{ space: EMPTY, value, object, string, characters, isSorted: true },
    ...{ holds: WITHOUT_QUOTE, mostCounted: MAX_COUNTED, block: MAX_COUNTED },
    ...{ rules, literal, whyUnwritable, key, otherKey, quoted, stringOf: quoted },
    counted: withoutQuote,
    inString: (ranges) => ({ kind: 'chars', ranges }),
  };
}

/** Why the text cannot stand between quotes; null: it can. */
function whyNoText(content: string): string | null {
  if (content.includes(QUOTE))
    return `this model writes texts between ${QUOTE}, and the schema lists one with that in it`;
  if (/\p{Surrogate}/u.test(content))
    return 'the schema lists a text with half a character (a lone surrogate)';
  return null;
}

function whyUnwritable(value: JsonValue): string | null {
  if (typeof value === 'string') return whyNoText(value);
  if (Array.isArray(value)) return firstReason(value);
  if (!isObject(value)) return null;
  return (
    firstReason(Object.values(value)) ??
    firstReason(Object.keys(value).filter((name) => !BARE_NAME.test(name)))
  );
}

function firstReason(values: readonly JsonValue[]): string | null {
  for (const value of values) {
    const why = whyUnwritable(value);
    if (why !== null) return why;
  }
  return null;
}

/**
 * Texts of a length without the quote: a state for each number of characters, and of those at the end with which the quote begins. Of the
 * quote's first characters only the first comes twice in it, so that another one leads back to there or to none.
 * @param isLast false where more text follows: then none of these may stand at the end
 */
function withoutQuote(least: number, most: number | null, isLast: boolean): Expr {
  const length = most ?? least;
  spend(QUOTE.length * (length + 1));
  const edges: GraphEdge[] = [];
  const ends: number[] = [];
  for (let count = 0; count <= length; count++) {
    const next = most === null ? Math.min(count + 1, length) : count + 1;
    for (let begun = 0; begun < QUOTE.length; begun++) {
      const from = count * QUOTE.length + begun;
      if (count >= least && (isLast || begun === 0)) ends.push(from);
      if (next > length) continue;
      for (const { to, ranges } of BEHIND[begun]!)
        edges.push({ from, to: next * QUOTE.length + to, expr: { kind: 'chars', ranges } });
    }
  }
  return edges.length === 0 ? EMPTY : { kind: 'graph', edges, ends };
}

/** By how much of the quote has come: the characters that may follow, and how much of it has come then. */
const BEHIND = [...QUOTE].map((wanted, begun) => {
  const one = (character: string): CodePoints => {
    const point = character.codePointAt(0)!;
    return [[point, point]];
  };
  const goesOn = begun + 1 < QUOTE.length ? [{ to: begun + 1, ranges: one(wanted) }] : [];
  const restarts = begun === 0 ? [] : [{ to: 1, ranges: one(QUOTE[0]!) }];
  const others = complement(normalized([...one(wanted), ...one(QUOTE[0]!)]));
  return [...goesOn, ...restarts, { to: 0, ranges: others }];
});

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
