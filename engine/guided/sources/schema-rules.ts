import type { Expr } from '../grammar.js';
import type { Notation } from './notation.js';
import type { SchemaFaults } from './schema-faults.js';
import type { JsonValue } from './schema-keywords.js';
import type { SchemaResolver } from './schema-resolver.js';
import type { SchemaValues } from './schema-values.js';

/** The grammar of a schema while it is made: what the expressions of its types need. */
export interface SchemaRules {
  readonly resolver: SchemaResolver;
  readonly values: SchemaValues;
  readonly faults: SchemaFaults;
  readonly notation: Notation;
  /** Expression for a value of the schema at a place. */
  value(schema: JsonValue, path: string): Expr;
  /** A name for rules, unlike all before. */
  newName(kind: string): string;
  /** Adds a rule, and returns a reference to it. */
  add(name: string, expr: Expr): Expr;
  /** The rule for a key, made when the key first comes. */
  ruleFor(key: string, make: () => Expr): Expr;
}
