import {
  alt,
  type CodePoints,
  chars,
  complement,
  type Expr,
  intersection,
  normalized,
  oneOf,
  optional,
  repeat,
  rule,
  seq,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import type { Notation } from './notation.js';
import { MAX_REPETITION } from './regex-reader.js';

/** Characters that stand for themselves in a JSON string. */
const PLAIN: CodePoints = complement(
  normalized([
    [0, 0x1f],
    [0x22, 0x22],
    [0x5c, 0x5c],
  ]),
);
const HEX = oneOf('0-9a-fA-F');
const SHORT_ESCAPES: Readonly<Record<number, string>> = {
  34: '\\"',
  92: '\\\\',
  8: '\\b',
  12: '\\f',
  10: '\\n',
  13: '\\r',
  9: '\\t',
};

/** Most digits of a number before its point or exponent, and after the point: as many as a double keeps. */
export const MAX_DIGITS = 15;
const DIGIT = oneOf('0-9');
/** -0 is left out: it equals 0, but programs write it differently after reading it. */
const INTEGER = alt(text('0'), seq(optional(text('-')), oneOf('1-9'), repeat(DIGIT, 0, MAX_DIGITS - 1)));
const SIGNED = seq(optional(text('-')), alt(text('0'), seq(oneOf('1-9'), repeat(DIGIT, 0, MAX_DIGITS - 1))));
const NUMBER = seq(
  SIGNED,
  optional(seq(text('.'), repeat(DIGIT, 1, MAX_DIGITS))),
  // The exponent has at most two digits, so that no number becomes infinite, or wrongly zero.
  optional(seq(oneOf('eE'), optional(oneOf('+-')), repeat(DIGIT, 1, 2))),
);

/**
 * One character of a JSON string, that is one code point of its value: unescaped, escaped by a letter, or by \u with four
 * digits that are no half of a surrogate pair.
 */
const CHARACTER = alt(
  { kind: 'chars', ranges: PLAIN },
  seq(text('\\'), oneOf('"\\/bfnrt')),
  seq(
    text('\\u'),
    alt(seq(oneOf('0-9a-cA-Ce-fE-F'), HEX, HEX, HEX), seq(oneOf('dD'), oneOf('0-7'), HEX, HEX)),
  ),
);

/** At most one space, or a line break and an indent: unlimited white space could make an answer endless. */
const SPACE = optional(alt(text(' '), seq(text('\n'), repeat(text(' '), 0, 32))));

/** Name of the rule for white space. */
export const JSON_SPACE = 'json-space';
const WS = rule(JSON_SPACE);
const JSON_CHARACTER = rule('json-character');
const JSON_STRING = rule('json-string');
export const JSON_INTEGER = rule('json-integer');
export const JSON_NUMBER = rule('json-number');
const JSON_OBJECT = rule('json-object');
const JSON_ARRAY = rule('json-array');
const JSON_VALUE = rule('json-value');

/** The rules of JSON itself, for grammars to refer to. */
export function jsonRules(): Map<string, Expr> {
  const member = seq(JSON_STRING, text(':'), WS, JSON_VALUE);
  return new Map<string, Expr>([
    [JSON_SPACE, SPACE],
    ['json-character', CHARACTER],
    ['json-string', seq(text('"'), repeat(JSON_CHARACTER, 0, null), text('"'))],
    ['json-integer', INTEGER],
    ['json-number', NUMBER],
    ['json-object', seq(text('{'), list(member), text('}'))],
    ['json-array', seq(text('['), list(JSON_VALUE), text(']'))],
    [
      'json-value',
      alt(JSON_STRING, JSON_NUMBER, JSON_OBJECT, JSON_ARRAY, text('true'), text('false'), text('null')),
    ],
  ]);
}

/** Any number of items with commas between them, and white space around. */
function list(item: Expr): Expr {
  return alt(WS, seq(WS, item, repeat(seq(text(','), WS, item), 0, null), WS));
}

/** The text of a value as JSON.stringify writes it. */
function literal(value: unknown): Expr {
  return text(JSON.stringify(value));
}

/** The characters in the form that they have in a JSON string, one form for each. */
function inString(ranges: CodePoints): Expr {
  const ways: Expr[] = [{ kind: 'chars', ranges: intersection(ranges, PLAIN) }];
  for (const [low, high] of intersection(ranges, complement(PLAIN))) {
    for (let codePoint = low; codePoint <= high; codePoint++) {
      const hex = codePoint.toString(16).padStart(4, '0');
      ways.push(text(SHORT_ESCAPES[codePoint] ?? `\\u${hex}`));
    }
  }
  return alt(...ways);
}

/** Turns an expression over the characters of a string's value into one over the JSON text of the string. */
function asJsonString(value: Expr): Expr {
  return seq(text('"'), escapedIn(value), text('"'));
}

function escapedIn(expr: Expr): Expr {
  spend(1);
  switch (expr.kind) {
    case 'chars':
      return inString(expr.ranges);
    case 'text':
      return text(JSON.stringify(expr.text).slice(1, -1));
    case 'seq':
    case 'alt':
      return { kind: expr.kind, items: expr.items.map(escapedIn) };
    case 'repeat':
      return { ...expr, item: escapedIn(expr.item) };
    case 'graph':
      return { ...expr, edges: expr.edges.map((edge) => ({ ...edge, expr: escapedIn(edge.expr) })) };
    case 'rule':
    case 'special':
      return expr;
  }
}

/**
 * A text of these characters that is none of the names: the key of an additional property.
 *
 *   names "ab" "b"      a  b  <anything after>         at each character of a name: one that no name goes on with,
 *                       <neither a nor b> ...          or the end where no name has its own
 */
export function textBesides(names: Iterable<string>, ranges: CodePoints): Expr {
  interface Node {
    isName: boolean;
    next: Map<number, Node>;
  }
  const root: Node = { isName: false, next: new Map() };
  for (const name of names) {
    let node = root;
    for (const character of name) {
      const codePoint = character.codePointAt(0)!;
      const next: Node = node.next.get(codePoint) ?? { isName: false, next: new Map() };
      node.next.set(codePoint, next);
      node = next;
    }
    node.isName = true;
  }
  const plain: Expr = { kind: 'chars', ranges };
  const rest = (node: Node): Expr => {
    spend(8);
    const taken = normalized([...node.next.keys()].map((codePoint) => [codePoint, codePoint] as const));
    const others: Expr = { kind: 'chars', ranges: intersection(ranges, complement(taken)) };
    const ways: Expr[] = [seq(others, repeat(plain, 0, null))];
    if (!node.isName) ways.push({ kind: 'seq', items: [] });
    for (const [codePoint, next] of node.next) {
      const isPlain = intersection(ranges, [[codePoint, codePoint]]).length > 0;
      if (isPlain) ways.push(seq(chars([codePoint, codePoint]), rest(next)));
    }
    return alt(...ways);
  };
  return rest(root);
}

const quoted = (characters: Expr): Expr => seq(text('"'), characters, text('"'));

/** JSON itself. */
export const JSON_NOTATION: Notation = {
  space: WS,
  value: JSON_VALUE,
  object: JSON_OBJECT,
  string: JSON_STRING,
  characters: repeat(JSON_CHARACTER, 0, null),
  holds: null,
  mostCounted: MAX_REPETITION,
  block: 1000,
  counted: (least, most) => repeat(JSON_CHARACTER, least, most),
  isSorted: false,
  rules: jsonRules,
  literal,
  whyUnwritable: () => null,
  key: literal,
  otherKey: (names) => quoted(textBesides(names, PLAIN)),
  quoted,
  inString,
  stringOf: asJsonString,
};
