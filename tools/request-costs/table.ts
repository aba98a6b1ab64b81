import { megabytes, ms } from './bounds.js';
import type { Cost } from './measure.js';

/** Requests that are shown for each figure. */
const SHOWN = 3;

/** The most expensive requests by each figure, as Markdown. Refused ones cost something too, and count. */
export function costTable(costs: readonly Cost[]): string {
  const rows = [
    ...top(costs, 'main thread held without a break', ({ holdMs }) => holdMs, ms),
    ...top(costs, 'main thread up to the first byte of the answer', ({ admissionMs }) => admissionMs, ms),
    ...top(costs, "engine's thread between two tokens of a neighbour", ({ iterationMs }) => iterationMs, ms),
    ...top(costs, 'memory beyond four times the body', beyondBody, megabytes),
  ];
  return ['| the most of | request | figure | body |', '|---|---|---|---|', ...rows].join('\n');
}

function beyondBody({ memoryBytes, bodyBytes }: Cost): number {
  return Math.max(0, memoryBytes - 4 * bodyBytes);
}

function top(
  costs: readonly Cost[],
  what: string,
  figure: (cost: Cost) => number,
  written: (value: number) => string,
): string[] {
  return costs
    .toSorted((a, b) => figure(b) - figure(a))
    .slice(0, SHOWN)
    .map((cost, i) => {
      const refused = cost.status === 200 ? '' : ` (refused: ${cost.status})`;
      const name = `\`${cost.name}\`${refused}`;
      return `| ${i === 0 ? what : ''} | ${name} | ${written(figure(cost))} | ${megabytes(cost.bodyBytes)} |`;
    });
}
