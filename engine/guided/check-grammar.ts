import { EMPTY, type Expr, type Grammar, type GraphEdge, GuideError } from './grammar.js';
import { spend } from './reading-work.js';

type Graph = Extract<Expr, { kind: 'graph' }>;

/**
 * Makes a grammar fit for an automaton. Parts that can never be completed are taken out, so that no answer is led into
 * them. A grammar is refused if nothing of it is left, if it names a rule it does not have, or if it is left-recursive.
 * @throws GuideError.
 */
export function checkedGrammar({ rules, root }: Grammar): Grammar {
  checkNames(rules, root);
  const productive = productiveRules(rules);
  if (!productive.has(root)) {
    throw new GuideError(`No text matches the guide: the rule ${root} can never be completed.`);
  }
  const pruned = new Map<string, Expr>();
  const reachable = [root];
  for (const name of reachable) {
    if (pruned.has(name)) continue;
    const expr = prune(rules.get(name)!, productive)!;
    pruned.set(name, expr);
    forEachRule(expr, (used) => reachable.push(used));
  }
  const grammar = { rules: pruned, root };
  checkLeftRecursion(pruned);
  return grammar;
}

function checkNames(rules: ReadonlyMap<string, Expr>, root: string): void {
  if (!rules.has(root)) throw new GuideError(`The grammar has no rule ${root}, with which texts begin.`);
  for (const [name, expr] of rules) {
    forEachRule(expr, (used) => {
      if (!rules.has(used))
        throw new GuideError(`The rule ${name} uses the rule ${used}, which the grammar does not have.`);
    });
  }
}

function forEachRule(expr: Expr, visit: (name: string) => void): void {
  spend(1);
  if (expr.kind === 'rule') visit(expr.name);
  else if (expr.kind === 'repeat') forEachRule(expr.item, visit);
  else if (expr.kind === 'graph') for (const edge of expr.edges) forEachRule(edge.expr, visit);
  else if (expr.kind === 'seq' || expr.kind === 'alt')
    for (const item of expr.items) forEachRule(item, visit);
}

/** Rules that match at least one text. */
function productiveRules(rules: ReadonlyMap<string, Expr>): Set<string> {
  const productive = new Set<string>();
  grow(rules, productive, (expr) => isProductive(expr, productive));
  return productive;
}

/**
 * Adds rules whose expression `holds` until none is left to add. Each rule is tested again only when one that it uses was
 * added.
 */
function grow(rules: ReadonlyMap<string, Expr>, found: Set<string>, holds: (expr: Expr) => boolean): void {
  const users = new Map<string, Set<string>>();
  for (const [name, expr] of rules) {
    forEachRule(expr, (used) => {
      const list = users.get(used) ?? new Set();
      users.set(used, list);
      list.add(name);
    });
  }
  const queue = [...rules.keys()];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name) || !holds(rules.get(name)!)) continue;
    found.add(name);
    for (const user of users.get(name) ?? []) queue.push(user);
  }
}

function isProductive(expr: Expr, rules: ReadonlySet<string>): boolean {
  spend(1);
  switch (expr.kind) {
    case 'chars':
      return expr.ranges.length > 0;
    case 'text':
    case 'special':
      return true;
    case 'seq':
      return expr.items.every((item) => isProductive(item, rules));
    case 'alt':
      return expr.items.some((item) => isProductive(item, rules));
    case 'repeat':
      return expr.min === 0 || isProductive(expr.item, rules);
    case 'graph':
      return productiveStates(expr, (label) => isProductive(label, rules)).has(0);
    case 'rule':
      return rules.has(expr.name);
  }
}

/** The expression without parts that can never be completed; null if nothing of it is left. */
function prune(expr: Expr, productive: ReadonlySet<string>): Expr | null {
  spend(1);
  switch (expr.kind) {
    case 'chars':
      return expr.ranges.length > 0 ? expr : null;
    case 'seq': {
      const items = expr.items.map((item) => prune(item, productive));
      return items.includes(null) ? null : { kind: 'seq', items: items as Expr[] };
    }
    case 'alt': {
      const items = expr.items.map((item) => prune(item, productive)).filter((item) => item !== null);
      return items.length === 0 ? null : { kind: 'alt', items };
    }
    case 'repeat': {
      const item = prune(expr.item, productive);
      if (item === null) return expr.min === 0 ? EMPTY : null;
      return { ...expr, item };
    }
    case 'graph':
      return pruneGraph(expr, productive);
    case 'rule':
      return productive.has(expr.name) ? expr : null;
    default:
      return expr;
  }
}

/** The graph without states that lead to no end; null if its first state is one of these. */
function pruneGraph(graph: Graph, productive: ReadonlySet<string>): Expr | null {
  const pruned = graph.edges.map((edge) => ({ ...edge, expr: prune(edge.expr, productive) }));
  const left = pruned.filter((edge): edge is GraphEdge => edge.expr !== null);
  const states = productiveStates({ ...graph, edges: left }, () => true);
  if (!states.has(0)) return null;
  return { ...graph, edges: left.filter(({ from, to }) => states.has(from) && states.has(to)) };
}

/** States of a graph from which an end can be reached over edges whose expression `holds`. */
function productiveStates({ edges, ends }: Graph, holds: (expr: Expr) => boolean): Set<number> {
  spend(edges.length + ends.length);
  const into = new Map<number, number[]>();
  for (const { from, to, expr } of edges) {
    if (!holds(expr)) continue;
    const sources = into.get(to) ?? [];
    into.set(to, sources);
    sources.push(from);
  }
  const states = new Set(ends);
  for (const state of states) for (const source of into.get(state) ?? []) states.add(source);
  return states;
}

function isNullable(expr: Expr, rules: ReadonlySet<string>): boolean {
  spend(1);
  switch (expr.kind) {
    case 'chars':
    case 'special':
      return false;
    case 'text':
      return expr.text === '';
    case 'seq':
      return expr.items.every((item) => isNullable(item, rules));
    case 'alt':
      return expr.items.some((item) => isNullable(item, rules));
    case 'repeat':
      return expr.min === 0 || isNullable(expr.item, rules);
    case 'graph':
      return expr.ends.includes(0);
    case 'rule':
      return rules.has(expr.name);
  }
}

/**
 * Refuses left recursion: a rule that can begin with itself, before anything is matched, would be followed for ever.
 */
function checkLeftRecursion(rules: ReadonlyMap<string, Expr>): void {
  const nullable = new Set<string>();
  grow(rules, nullable, (expr) => isNullable(expr, nullable));
  const state = new Map<string, 'open' | 'done'>();
  const visit = (first: string): void => {
    // Uses an explicit stack, because grammars may be nested as deeply as they are long.
    const path: { name: string; next: string[] }[] = [
      { name: first, next: firstRules(rules.get(first)!, nullable) },
    ];
    state.set(first, 'open');
    while (path.length > 0) {
      const top = path.at(-1)!;
      const name = top.next.pop();
      if (name === undefined) {
        state.set(top.name, 'done');
        path.pop();
      } else if (state.get(name) === 'open') {
        throw new GuideError(
          `The rule ${name} is left-recursive: it can begin with itself before anything is matched. Write it as a repetition, such as item ("," item)*.`,
        );
      } else if (!state.has(name)) {
        state.set(name, 'open');
        path.push({ name, next: firstRules(rules.get(name)!, nullable) });
      }
    }
  };
  for (const name of rules.keys()) if (!state.has(name)) visit(name);
}

/** Names of the rules with which the expression can begin. */
function firstRules(expr: Expr, nullable: ReadonlySet<string>): string[] {
  spend(1);
  switch (expr.kind) {
    case 'seq': {
      const found: string[] = [];
      for (const item of expr.items) {
        for (const name of firstRules(item, nullable)) found.push(name);
        if (!isNullable(item, nullable)) break;
      }
      return found;
    }
    case 'alt':
      return expr.items.flatMap((item) => firstRules(item, nullable));
    case 'repeat':
      return expr.max === 0 ? [] : firstRules(expr.item, nullable);
    case 'graph':
      return expr.edges.flatMap((edge) => (edge.from === 0 ? firstRules(edge.expr, nullable) : []));
    case 'rule':
      return [expr.name];
    default:
      return [];
  }
}
