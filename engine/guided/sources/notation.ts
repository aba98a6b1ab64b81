import type { CodePoints, Expr } from '../grammar.js';
import type { TextSet } from '../texts/text-set.js';
import type { JsonValue } from './schema-keywords.js';

/**
 * How values that fulfil a schema are written: JSON, or what a model writes instead. Numbers, true, false, null, brackets, braces, colons and
 * commas are JSON's in each of them.
 */
export interface Notation {
  /** What may stand between tokens. */
  readonly space: Expr;
  /** Any value, any object, any string. */
  readonly value: Expr;
  readonly object: Expr;
  readonly string: Expr;
  /** Any characters within the quotes of a string. */
  readonly characters: Expr;
  /** Texts that a string can hold; null: any. */
  readonly holds: TextSet | null;
  /** Most characters that `counted` takes, and how many it takes of a longer text, which is cut. */
  readonly mostCounted: number;
  readonly block: number;
  /**
   * Some characters of a string, each a code point of its value. @param isLast false where others follow: pieces side by side are a string's
   * characters too
   */
  counted(least: number, most: number | null, isLast: boolean): Expr;
  /** True where properties come in the order of their names; false: in the schema's. */
  readonly isSorted: boolean;
  /** The rules that these expressions name. */
  rules(): ReadonlyMap<string, Expr>;
  /** The text of one value. */
  literal(value: JsonValue): Expr;
  /** Why it has no text for a value; null: it has one. */
  whyUnwritable(value: JsonValue): string | null;
  /** The name of a property, without the colon. */
  key(name: string): Expr;
  /** The name of a property that is none of these. */
  otherKey(names: Iterable<string>): Expr;
  /** A string of characters in their written form. */
  quoted(characters: Expr): Expr;
  /** Characters in the form that they have in a string, one form for each. */
  inString(ranges: CodePoints): Expr;
  /** A string with an expression over the characters of its value. */
  stringOf(value: Expr): Expr;
}
