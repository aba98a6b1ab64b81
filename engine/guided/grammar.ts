import { spend } from './reading-work.js';

/** Inclusive ranges of code points, ascending and apart from each other. */
export type CodePoints = readonly (readonly [number, number])[];

/**
 * An expression that texts match. `chars` is one character of the ranges, `text` exactly these characters; `repeat` with max null
 * has no upper bound; `special` is the special token of this text, which no character stands for. An `alt` without items matches
 * nothing, a `seq` without items the empty text. A `graph` matches the texts along the paths from its state 0 to an end.
 */
export type Expr =
  | { readonly kind: 'chars'; readonly ranges: CodePoints }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'special'; readonly text: string }
  | { readonly kind: 'seq'; readonly items: readonly Expr[] }
  | { readonly kind: 'alt'; readonly items: readonly Expr[] }
  | { readonly kind: 'repeat'; readonly item: Expr; readonly min: number; readonly max: number | null }
  | { readonly kind: 'graph'; readonly edges: readonly GraphEdge[]; readonly ends: readonly number[] }
  | { readonly kind: 'rule'; readonly name: string };

/** A step of a graph from one state to another. Its expression never matches the empty text. */
export interface GraphEdge {
  readonly from: number;
  readonly to: number;
  readonly expr: Expr;
}

/** Rules by name; a text matches if the rule `root` matches it from its first character to its last. */
export interface Grammar {
  readonly rules: ReadonlyMap<string, Expr>;
  readonly root: string;
  /** Sentences about what of its schemas is not followed. Absent: all of it is. */
  readonly leftOut?: readonly string[];
}

export { GuideError } from './guide-error.js';

export const EMPTY: Expr = { kind: 'seq', items: [] };
export const NOTHING: Expr = { kind: 'alt', items: [] };

export const text = (value: string): Expr => ({ kind: 'text', text: value });
/** One special token of the vocabulary, such as [TOOL_CALLS]. */
export const special = (value: string): Expr => ({ kind: 'special', text: value });
export const rule = (name: string): Expr => ({ kind: 'rule', name });
export const chars = (...ranges: [number, number][]): Expr => ({ kind: 'chars', ranges: normalized(ranges) });

export function seq(...items: Expr[]): Expr {
  return items.length === 1 ? items[0]! : { kind: 'seq', items };
}

export function alt(...items: Expr[]): Expr {
  return items.length === 1 ? items[0]! : { kind: 'alt', items };
}

export function repeat(item: Expr, min: number, max: number | null): Expr {
  return { kind: 'repeat', item, min, max };
}

export const optional = (item: Expr): Expr => repeat(item, 0, 1);

/** One of the characters of a string, such as '0-9a-f' with ranges written as in a class. */
export function oneOf(classText: string): Expr {
  const ranges: [number, number][] = [];
  for (let i = 0; i < classText.length; i++) {
    const low = classText.charCodeAt(i);
    const isRange = classText[i + 1] === '-' && i + 2 < classText.length;
    ranges.push([low, isRange ? classText.charCodeAt(i + 2) : low]);
    if (isRange) i += 2;
  }
  return { kind: 'chars', ranges: normalized(ranges) };
}

const LAST_CODE_POINT = 0x10ffff;
/** All characters. Surrogates are none: UTF-8 has no bytes for them. */
const ALL: CodePoints = [
  [0, 0xd7ff],
  [0xe000, LAST_CODE_POINT],
];

/** Sorts and joins ranges, and removes surrogates. */
export function normalized(ranges: readonly (readonly [number, number])[]): CodePoints {
  spend(ranges.length);
  const joined: [number, number][] = [];
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = joined.at(-1);
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else joined.push([low, high]);
  }
  return intersection(joined, ALL);
}

export function intersection(a: CodePoints, b: CodePoints): CodePoints {
  spend(a.length + b.length);
  const common: [number, number][] = [];
  for (let i = 0, k = 0; i < a.length && k < b.length; ) {
    const low = Math.max(a[i]![0], b[k]![0]);
    const high = Math.min(a[i]![1], b[k]![1]);
    if (low <= high) common.push([low, high]);
    if (a[i]![1] < b[k]![1]) i++;
    else k++;
  }
  return common;
}

/** All characters except these. */
export function complement(ranges: CodePoints): CodePoints {
  spend(ranges.length);
  const rest: [number, number][] = [];
  let next = 0;
  for (const [low, high] of ranges) {
    if (low > next) rest.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= LAST_CODE_POINT) rest.push([next, LAST_CODE_POINT]);
  return intersection(rest, ALL);
}

export const ANY_CHARACTER: Expr = { kind: 'chars', ranges: ALL };
