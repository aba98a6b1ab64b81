import { ANY_CHARACTER, type CodePoints, type Expr } from '../grammar.js';
import { spend } from '../reading-work.js';

/**
 * A regular set of texts: an expression without rules, that can also be all of several sets at once (`and`), or every text
 * that is not of a set (`not`).
 */
export type TextSet =
  | { readonly kind: 'chars'; readonly ranges: CodePoints }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'seq' | 'alt' | 'and'; readonly items: readonly TextSet[] }
  | { readonly kind: 'repeat'; readonly item: TextSet; readonly min: number; readonly max: number | null }
  | { readonly kind: 'not'; readonly item: TextSet };

export const NO_TEXT: TextSet = { kind: 'alt', items: [] };
export const EMPTY_TEXT: TextSet = { kind: 'text', text: '' };
const ONE_CHARACTER: TextSet = {
  kind: 'chars',
  ranges: (ANY_CHARACTER as { ranges: CodePoints }).ranges,
};
export const ANY_TEXT: TextSet = { kind: 'repeat', item: ONE_CHARACTER, min: 0, max: null };

export const sequenceOf = (...items: TextSet[]): TextSet =>
  items.length === 1 ? items[0]! : { kind: 'seq', items };
export const anyOf = (...items: TextSet[]): TextSet =>
  items.length === 1 ? items[0]! : { kind: 'alt', items };
export const allOf = (...items: TextSet[]): TextSet =>
  items.length === 1 ? items[0]! : { kind: 'and', items };
export const complementOf = (item: TextSet): TextSet => ({ kind: 'not', item });
export const oneTextOf = (texts: readonly string[]): TextSet =>
  anyOf(...texts.map((text) => ({ kind: 'text', text }) as const));

/** Texts of this many characters. max null: no upper bound. */
export const textsOfLength = (min: number, max: number | null): TextSet => ({
  kind: 'repeat',
  item: ONE_CHARACTER,
  min,
  max,
});

/** The set as an expression that needs no further work; null where it has an intersection or a complement. */
export function plainExpr(set: TextSet): Expr | null {
  return isPlain(set) ? (set as Expr) : null;
}

function isPlain(set: TextSet): boolean {
  spend(1);
  switch (set.kind) {
    case 'chars':
    case 'text':
      return true;
    case 'seq':
    case 'alt':
      return set.items.every(isPlain);
    case 'repeat':
      return isPlain(set.item);
    case 'and':
    case 'not':
      return false;
  }
}
