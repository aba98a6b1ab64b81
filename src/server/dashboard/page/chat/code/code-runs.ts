import type { Root, RootContent } from 'hast';

/** A piece of code: its length, and the classes of its colour; '' for none. */
export type Run = readonly [length: number, classes: string];

export interface CodeQuestion {
  code: string;
  language: string;
}

export interface CodeAnswer {
  /** null: it has no colours, since its language is not known or there would be too many pieces. */
  runs: Run[] | null;
}

/** Pieces of one block of code at most: each is an element. */
export const MAX_RUNS = 20_000;

/** The pieces of a tree of coloured code, in order; null where there are too many. */
export function runsOf(tree: Root): Run[] | null {
  const runs: Run[] = [];
  const walk = (nodes: readonly RootContent[], classes: string): void => {
    for (const node of nodes) {
      if (runs.length > MAX_RUNS) return;
      if (node.type === 'text') runs.push([node.value.length, classes]);
      else if (node.type === 'element') {
        const own = node.properties.className;
        walk(node.children as RootContent[], Array.isArray(own) ? own.join(' ') : classes);
      }
    }
  };
  walk(tree.children as RootContent[], '');
  return runs.length > MAX_RUNS ? null : runs;
}
