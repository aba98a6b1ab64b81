import { type CodePoints, type Expr, type Grammar, GuideError } from './grammar.js';
import { spend } from './reading-work.js';
import { characterBytes } from './utf8-ranges.js';

/** Most states of an automaton. */
const MAX_STATES = 100_000;
/** Most edges from one state to another: some 20 bytes each. */
const MAX_EDGES = 400_000;

interface Size {
  states: number;
  edges: number;
}

/**
 * Computes the size of a grammar's automaton before it is built: repetitions are multiplied, not written out.
 * @throws GuideError if it is too large.
 */
export function checkSize({ rules }: Grammar): Size {
  const size: Size = { states: 0, edges: 0 };
  for (const expr of rules.values()) {
    const { states, edges } = sizeOf(expr);
    size.states += states + 2;
    size.edges += edges;
  }
  for (const [what, found, most] of [
    ['states', size.states, MAX_STATES],
    ['ways between states', size.edges, MAX_EDGES],
  ] as const) {
    if (found <= most) continue;
    throw new GuideError(
      `The guide is too large: written out, its repetitions included, it has more than ${most} ${what}.`,
    );
  }
  return size;
}

/** States and edges that the expression adds between two existing states. */
function sizeOf(expr: Expr): Size {
  spend(1);
  switch (expr.kind) {
    case 'text':
      return chain(Buffer.byteLength(expr.text));
    case 'special':
      return chain(Buffer.byteLength(expr.text) + 2);
    case 'chars':
      return sizeOfCharacters(expr.ranges);
    case 'rule':
      return { states: 0, edges: 1 };
    case 'alt':
      return sum(expr.items, 0, 0);
    case 'seq':
      return expr.items.length === 0 ? { states: 0, edges: 1 } : sum(expr.items, expr.items.length - 1, 0);
    case 'graph': {
      const states = new Set(expr.edges.flatMap(({ from, to }) => [from, to]));
      return sum(
        expr.edges.map((edge) => edge.expr),
        states.size + 1,
        expr.ends.length + 1,
      );
    }
    case 'repeat': {
      const { states, edges } = sizeOf(expr.item);
      const { min, max } = expr;
      if (max === null) return { states: (min + 1) * (states + 1) + 1, edges: (min + 1) * edges + 3 };
      return { states: max * (states + 1), edges: max * edges + (max - min) + 1 };
    }
  }
}

function chain(bytes: number): Size {
  return { states: Math.max(0, bytes - 1), edges: Math.max(1, bytes) };
}

function sum(items: readonly Expr[], states: number, edges: number): Size {
  const size = { states, edges };
  for (const item of items) {
    const one = sizeOf(item);
    size.states += one.states;
    size.edges += one.edges;
  }
  return size;
}

function sizeOfCharacters(ranges: CodePoints): Size {
  spend(ranges.length);
  return characterBytes(ranges);
}
