import { alt, EMPTY, type Expr, type GraphEdge, NOTHING, optional, repeat, seq, text } from '../grammar.js';
import { spend } from '../reading-work.js';
import { counts } from './schema-counts.js';
import type { JsonValue, SchemaObject } from './schema-keywords.js';
import { listed } from './schema-merge.js';
import type { SchemaRules } from './schema-rules.js';

/** Most states of a list whose items are counted, or remembered, one by one. */
const MAX_LIST_STATES = 5000;
/** Most sets of written items that are distinguished; of more values, items come in their order. */
const MAX_SETS = 1500;
const STATE_WORK = 20;

/** Expressions for arrays. */
export class SchemaArrays {
  readonly #rules: SchemaRules;
  readonly #between: Between;

  constructor(rules: SchemaRules) {
    this.#rules = rules;
    const { space } = rules.notation;
    this.#between = { space, comma: seq(text(','), space) };
  }

  expr(schema: SchemaObject, path: string): Expr {
    const { faults } = this.#rules;
    const first = listed(schema.prefixItems);
    const [least, most] = counts('Items', schema.minItems, schema.maxItems, path, faults);
    const isUnique = schema.uniqueItems === true && (most === null || most > 1);
    const [minContains, contains] = this.#contained(schema, path);
    if (isUnique) {
      const values =
        first.length > 0 || minContains > 0 ? null : this.#rules.values.listOf(schema.items ?? true, path);
      if (values !== null) return this.#unique(values, least, most);
      faults.unsupported(
        path,
        'uniqueItems is supported only where items is an enum, const, boolean, null or a small range of integers, without prefixItems and contains',
      );
    }
    // A tuple that does not mention further items has none, unless its minimum asks for them.
    const isClosed =
      schema.items === false || (schema.items === undefined && first.length > 0 && least <= first.length);
    const items: JsonValue = isClosed ? false : (schema.items ?? true);
    if (minContains > 0 && contains !== undefined) {
      const length = Math.max(first.length, least, most ?? 0, 1);
      if ((length + 1) * (minContains + 1) <= MAX_LIST_STATES)
        return this.#containing({ first, items, contains, minContains, least, most, length }, path);
      faults.unsupported(path, 'contains is not supported together with this number of items');
    }
    const expressions = first.map((item, i) => this.#rules.value(item, `${path}/prefixItems/${i}`));
    const item = isClosed ? NOTHING : this.#itemRule(items, `${path}/items`);
    return seq(text('['), plainItems(expressions, item, [least, most], this.#between), text(']'));
  }

  #contained(
    { contains, minContains, maxContains }: SchemaObject,
    path: string,
  ): [number, JsonValue | undefined] {
    if (contains === undefined) return [0, undefined];
    if (maxContains !== undefined)
      this.#rules.faults.unsupported(path, 'the keyword maxContains is not supported');
    return [(minContains as number | undefined) ?? 1, contains];
  }

  /** Makes a rule for an item: repetitions are written out, and a call takes only one state. */
  #itemRule(items: JsonValue, path: string): Expr {
    return this.#rules.add(this.#rules.newName('item'), this.#rules.value(items, path));
  }

  /** Items of which some fulfil another schema too: a state for each number of items, and of those. */
  #containing(list: ContainingList, path: string): Expr {
    const { first, items, contains, minContains, least, most, length } = list;
    const rulesOf = [...first, items].map((item, i) => {
      const at = i < first.length ? `${path}/prefixItems/${i}` : `${path}/items`;
      return {
        any: this.#itemRule(item, at),
        contained: this.#itemRule({ allOf: [item, contains] }, `${path}/contains`),
      };
    });
    const { space, comma } = this.#between;
    const edges: GraphEdge[] = [];
    const ends: number[] = [];
    const stateOf = (count: number, found: number) => count * (minContains + 1) + found;
    for (let count = 0; count <= length; count++)
      for (let found = 0; found <= minContains; found++) {
        spend(STATE_WORK);
        const from = stateOf(count, found);
        if (count >= least && found >= minContains) ends.push(from);
        if (most !== null && count >= most) continue;
        const { any, contained } = rulesOf[Math.min(count, first.length)]!;
        const next = Math.min(length, count + 1);
        const before = count === 0 ? space : comma;
        edges.push({ from, to: stateOf(next, found), expr: seq(before, any) });
        if (found < minContains)
          edges.push({ from, to: stateOf(next, found + 1), expr: seq(before, contained) });
      }
    return inBrackets({ kind: 'graph', edges, ends }, space);
  }

  /** Different items of a list of values, in any order where these are few, else in the list's. */
  #unique(values: readonly JsonValue[], least: number, most: number | null): Expr {
    const greatest = Math.min(most ?? values.length, values.length);
    if (least > greatest) return NOTHING;
    const items = values.map((value) =>
      this.#rules.add(this.#rules.newName('item'), this.#rules.notation.literal(value)),
    );
    const count = numberOfSets(values.length, greatest);
    return count <= MAX_SETS
      ? inBrackets(anyOrder(items, [least, greatest], this.#between), this.#between.space)
      : inBrackets(this.#inOrder(items, least, greatest), this.#between.space);
  }

  /** Items in their order, each at most once: a rule for each of them and each number of items before it. */
  #inOrder(items: readonly Expr[], least: number, most: number): Expr {
    const name = this.#rules.newName('ordered');
    const cap = most < items.length ? most : Math.max(1, least);
    let behind = Array.from({ length: cap + 1 }, (_, count) => (count >= least ? EMPTY : NOTHING));
    for (const [i, item] of [...items.entries()].reverse()) {
      spend(STATE_WORK * cap);
      const next = behind.map((one, count) => this.#rules.add(`${name}-${i}-${count}`, one));
      behind = next.map((skipped, count) => {
        const isFull = most < items.length && count >= most;
        if (isFull) return skipped;
        const { space, comma } = this.#between;
        return alt(seq(count === 0 ? space : comma, item, next[Math.min(cap, count + 1)]!), skipped);
      });
    }
    return behind[0]!;
  }
}

interface ContainingList {
  first: readonly JsonValue[];
  items: JsonValue;
  contains: JsonValue;
  minContains: number;
  least: number;
  most: number | null;
  /** Number of items from which on they are not distinguished. */
  length: number;
}

/** What stands before the first item, and before each further one. */
interface Between {
  readonly space: Expr;
  readonly comma: Expr;
}

function inBrackets(items: Expr, space: Expr): Expr {
  return seq(text('['), items, space, text(']'));
}

function plainItems(
  first: readonly Expr[],
  item: Expr,
  [least, most]: readonly [number, number | null],
  { space, comma }: Between,
): Expr {
  const open = most === null ? null : Math.max(0, most - first.length);
  const tail = repeat(seq(comma, item), Math.max(0, least - first.length), open);
  if (first.length === 0) {
    const more = most === null ? null : most - 1;
    const some =
      most === 0 ? NOTHING : seq(space, item, repeat(seq(comma, item), Math.max(0, least - 1), more), space);
    return least > 0 ? some : alt(space, some);
  }
  let rest: Expr = tail;
  for (let i = first.length - 1; i >= 1; i--) {
    const follows = seq(comma, first[i]!, rest);
    rest = most !== null && i >= most ? EMPTY : i < least ? follows : optional(follows);
  }
  const some = most === 0 ? NOTHING : seq(space, first[0]!, rest, space);
  return least > 0 ? some : alt(space, some);
}

/** Number of sets of up to `most` of the values, up to a bound. */
function numberOfSets(values: number, most: number): number {
  let sets = 1;
  let ofSize = 1;
  for (let size = 1; size <= most && sets <= MAX_SETS; size++) {
    ofSize = (ofSize * (values - size + 1)) / size;
    sets += ofSize;
  }
  return sets;
}

/** A state for each set of items already written. */
function anyOrder(
  items: readonly Expr[],
  [least, most]: readonly [number, number],
  { space, comma }: Between,
): Expr {
  const states = new Map<string, { state: number; taken: readonly number[] }>([
    ['', { state: 0, taken: [] }],
  ]);
  const edges: GraphEdge[] = [];
  const ends: number[] = [];
  for (const { state, taken } of states.values()) {
    spend(STATE_WORK);
    if (taken.length >= least) ends.push(state);
    if (taken.length === most) continue;
    for (const [i, item] of items.entries()) {
      if (taken.includes(i)) continue;
      const next = [...taken, i].sort((a, b) => a - b);
      const key = next.join();
      const to = states.get(key)?.state ?? states.size;
      if (to === states.size) states.set(key, { state: to, taken: next });
      edges.push({ from: state, to, expr: seq(taken.length === 0 ? space : comma, item) });
    }
  }
  return edges.length === 0 ? EMPTY : { kind: 'graph', edges, ends };
}
