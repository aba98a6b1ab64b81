import { alt, type CodePoints, type Expr, NOTHING, repeat, seq } from '../grammar.js';
import { exprOfTexts, MAX_TEXT_STATES } from '../texts/text-graph.js';
import { lengthsOf } from '../texts/text-lengths.js';
import {
  ANY_TEXT,
  allOf,
  anyOf,
  complementOf,
  NO_TEXT,
  oneTextOf,
  type TextSet,
  textsOfLength,
} from '../texts/text-set.js';
import { characterBytes } from '../utf8-ranges.js';
import { regexTexts } from './regex.js';
import { counts } from './schema-counts.js';
import type { JsonValue, Schema, SchemaObject } from './schema-keywords.js';
import { shown } from './schema-keywords.js';
import { listed } from './schema-merge.js';
import type { SchemaRules } from './schema-rules.js';
import { SHORT_FORMATS, STRING_FORMATS, UNCOUNTED_FORMATS } from './string-formats.js';

/** Least and greatest number of characters; null: no bound. */
type Lengths = [number, number | null];

/** What a keyword asks of a text. */
interface TextPart {
  keyword: string;
  texts: TextSet;
  /** Texts in place of these where at most `upTo` characters are allowed. */
  uncounted?: TextSet;
  upTo: number;
  /** Fewer texts, whose automaton is smaller. */
  fewer?: TextSet;
  /** Of a part that asks for nothing but a length. */
  lengths?: Lengths;
}

/** Edges of a character's bytes above which it is a rule: an automaton has it in thousands of places. */
const MAX_OWN_EDGES = 3;

/** Expressions for strings, and for the names of properties. */
export class SchemaStrings {
  readonly #rules: SchemaRules;

  constructor(rules: SchemaRules) {
    this.#rules = rules;
  }

  /** Expression for a string of a schema, in its quotes. */
  expr(schema: SchemaObject, path: string): Expr {
    const { notation } = this.#rules;
    const parts = this.#parts(schema, path);
    const lengths = this.#lengths(schema, parts, path);
    if (parts.length === 0) {
      if (lengths === null) return notation.string;
      return notation.quoted(this.#ofLength(...lengths));
    }
    // The first, since others are left out before it.
    if (notation.holds !== null)
      parts.unshift({ keyword: 'a text without its quotes', texts: notation.holds, upTo: 0 });
    if (lengths !== null) {
      for (const part of parts)
        if ((lengths[1] ?? Number.POSITIVE_INFINITY) <= part.upTo) part.texts = part.uncounted ?? part.texts;
      parts.push({ keyword: 'minLength or maxLength', texts: textsOfLength(...lengths), upTo: 0, lengths });
    }
    const { minLength, maxLength, pattern, format, not } = schema;
    // One rule serves all strings of a kind: an address alone takes some thousand states, and schemas have hundreds of
    // them.
    const key = JSON.stringify(['string', pattern, format, not, lengths && [minLength, maxLength]]);
    return this.#rules.ruleFor(key, () => notation.stringOf(this.#sharing(this.#together(parts, path))));
  }

  /** Any text of a length. Long ones are counted in blocks: written out, each character would take a state. */
  #ofLength(least: number, most: number | null): Expr {
    const { characters, mostCounted, block: size } = this.#rules.notation;
    const counted = (from: number, to: number | null, isLast: boolean) => this.#counted(from, to, isLast);
    if (Math.max(least, most ?? 0) <= mostCounted) return counted(least, most, true);
    const block = this.#rules.ruleFor('block', () => counted(size, size, false));
    const exactly = (count: number) =>
      seq(
        repeat(block, Math.floor(count / size), Math.floor(count / size)),
        counted(count % size, count % size, false),
      );
    if (most === null) return seq(exactly(least), characters);
    const blocks = Math.floor((most - least) / size);
    const last = seq(repeat(block, blocks, blocks), counted(0, (most - least) % size, true));
    if (blocks === 0) return seq(exactly(least), last);
    const fewer = seq(repeat(block, 0, blocks - 1), counted(0, size - 1, true));
    return seq(exactly(least), alt(fewer, last));
  }

  /** Some characters; as a rule that strings of this length share where each takes several states. */
  #counted(least: number, most: number | null, isLast: boolean): Expr {
    const { notation } = this.#rules;
    const made = () => this.#sharing(notation.counted(least, most, isLast));
    return notation.holds === null ? made() : this.#rules.ruleFor(`length ${least} ${most} ${isLast}`, made);
  }

  /** Names that a schema of names allows. */
  names(schema: JsonValue, path: string): TextSet {
    const { resolver } = this.#rules;
    return anyOf(...resolver.alternatives(schema, path).map((one) => this.#namesOfPlain(one, path)));
  }

  #namesOfPlain(schema: Schema, path: string): TextSet {
    if (typeof schema === 'boolean') return schema ? ANY_TEXT : NO_TEXT;
    const types = listed(schema.type);
    if (types.length > 0 && !types.includes('string')) return NO_TEXT;
    if (schema.enum !== undefined) {
      const names = (schema.enum as JsonValue[]).filter((one) =>
        this.#rules.values.fitsPlain(one, schema, path),
      );
      return oneTextOf(names.filter((name) => typeof name === 'string'));
    }
    const parts = this.#parts(schema, path);
    const lengths = this.#lengths(schema, parts, path);
    const sets = parts.map(({ texts }) => texts);
    if (lengths !== null) sets.push(textsOfLength(...lengths));
    return sets.length === 0 ? ANY_TEXT : allOf(...sets);
  }

  /** Expression for one of these names, in its quotes; null where it takes too large an automaton. */
  nameExpr(names: TextSet): Expr | null {
    const { notation } = this.#rules;
    const expr = exprOfTexts(notation.holds === null ? names : allOf(notation.holds, names));
    return expr === null || expr === NOTHING ? expr : notation.stringOf(this.#sharing(expr));
  }

  /** Least and greatest length; null where the schema has none, or the other parts keep to them. */
  #lengths(schema: SchemaObject, parts: readonly TextPart[], path: string): Lengths | null {
    const { minLength, maxLength } = schema;
    if (minLength === undefined && maxLength === undefined) return null;
    const [least, most] = counts('Length', minLength, maxLength, path, this.#rules.faults);
    const known = parts.map(({ texts }) => lengthsOf(texts));
    return areWithin(known, [least, most]) ? null : [least, most];
  }

  #parts({ pattern, format, not }: SchemaObject, path: string): TextPart[] {
    const { resolver } = this.#rules;
    const patterns = listed(pattern) as string[];
    const formats = (listed(format) as string[]).filter((name) =>
      this.#knows(name, patterns.length > 0, path),
    );
    return [
      ...patterns.map((one) => ({ keyword: 'pattern', texts: resolver.patterns.texts(one), upTo: 0 })),
      ...formats.map(formatPart),
      ...listed(not).map((one) => ({
        keyword: 'not',
        texts: complementOf(this.names(one, path)),
        upTo: 0,
      })),
    ];
  }

  /** Unknown formats restrict nothing where a pattern says what they mean, as generators of schemas write them. */
  #knows(format: string, hasPattern: boolean, path: string): boolean {
    if (Object.hasOwn(STRING_FORMATS, format)) return true;
    if (!hasPattern) {
      const formats = Object.keys(STRING_FORMATS).join(', ');
      this.#rules.faults.unsupported(path, `the format ${shown(format)} is not supported; ${formats} are`);
    }
    return false;
  }

  /** Expression for the texts that fulfil all parts; without the last ones where it is too large and may leave them out. */
  #together(parts: readonly TextPart[], path: string): Expr {
    const expr = intersection(parts);
    if (expr !== null && expr !== NOTHING) return expr;
    if (expr === NOTHING) {
      const others = parts.filter(({ keyword }) => !keyword.startsWith('format '));
      const written = others.length < parts.length ? intersection(others) : NOTHING;
      if (written === NOTHING || written === null) return NOTHING;
      const format = parts.find(({ keyword }) => keyword.startsWith('format '))!.keyword;
      this.#rules.faults.unsupported(
        path,
        `none of the texts that are written for the ${format} fulfils ${namesOf(others)} too`,
      );
      return written;
    }
    this.#rules.faults.unsupported(
      path,
      `${namesOf(parts)} takes an automaton of more than ${MAX_TEXT_STATES} states`,
    );
    return parts.length === 1 ? this.#rules.notation.characters : this.#together(parts.slice(0, -1), path);
  }

  /** The expression with a rule for each class of characters, which the edges of an automaton have in common. */
  #sharing(expr: Expr): Expr {
    if (expr.kind !== 'graph') return expr;
    const edges = expr.edges.map((edge) => {
      if (edge.expr.kind !== 'chars' || characterBytes(edge.expr.ranges).edges <= MAX_OWN_EDGES) return edge;
      return { ...edge, expr: this.#characterRule(edge.expr.ranges) };
    });
    return { ...expr, edges };
  }

  #characterRule(ranges: CodePoints): Expr {
    return this.#rules.ruleFor(`characters ${ranges.join()}`, () => this.#rules.notation.inString(ranges));
  }
}

function formatPart(name: string): TextPart {
  const read = (expression: string) => regexTexts(expression, { mode: 'full' });
  const part: TextPart = { keyword: `format ${name}`, texts: read(STRING_FORMATS[name]!), upTo: 0 };
  const uncounted = UNCOUNTED_FORMATS[name];
  if (uncounted !== undefined) {
    part.uncounted = read(uncounted.expression);
    part.upTo = uncounted.upTo;
  }
  const fewer = SHORT_FORMATS[name];
  if (fewer !== undefined) part.fewer = read(fewer);
  return part;
}

/** The texts of all parts, or some of them where all take too large an automaton; null where these do too. */
function intersection(parts: readonly TextPart[]): Expr | null {
  const whole = exprOfTexts(allOf(...parts.map(({ texts }) => texts)));
  const shorter = parts.flatMap(({ fewer }) => fewer ?? []);
  if (whole !== null || shorter.length === 0) return whole;
  const known = shorter.map(lengthsOf);
  const sets = parts.filter(({ lengths }) => lengths === undefined || !areWithin(known, lengths));
  return exprOfTexts(allOf(...sets.map(({ texts, fewer }) => fewer ?? texts)));
}

/** True if texts of all these lengths keep to the bounds. */
function areWithin(known: readonly Lengths[], [least, most]: Lengths): boolean {
  const isLongEnough = least === 0 || known.some(([min]) => min >= least);
  return isLongEnough && (most === null || known.some(([, max]) => max !== null && max <= most));
}

function namesOf(parts: readonly TextPart[]): string {
  return [...new Set(parts.map(({ keyword }) => keyword))].join(' together with ');
}
