import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import type { SimulationInput } from '../../../engine/simulation/simulation-input.js';
import { simulationChart } from '../../../src/commands/simulation-chart.js';

function chart(input: SimulationInput): string[] {
  return simulationChart(input, simulate(input)).trimEnd().split('\n');
}

const one = (id: string | number, arrivalIteration: number, promptLength: number, maxNewTokens: number) => ({
  id,
  arrivalIteration,
  promptLength,
  maxNewTokens,
});

const BASE = {
  policy: 'GUARANTEED_NO_EVICT' as const,
  numBlocks: 8,
  tokensPerBlock: 4,
  maxNumRequests: 1,
  requests: [one(1, 0, 4, 3), one(2, 1, 4, 9)],
};

describe('the chart', () => {
  it('shows who waits, and what is over as blank', () => {
    // 1 runs in iterations 0 to 2; 2 waits in 1 and 2, and runs from 3 to 11. Blocks 1 2 2, then 1 2 2 2 2 3 3 3 3.
    expect(chart(BASE).slice(3, 7)).toEqual([
      '        0         10',
      '1       C==',
      '2        ..C========',
      'blocks  ▁▂▂▁▂▂▂▂▃▃▃▃',
    ]);
  });

  it('shows a paused request as paused until it runs again', () => {
    // 7 tokens of A and 8 of B in 3 blocks: B gives way in iteration 2 and waits for A's end in iteration 6.
    const requests = [one('A', 0, 4, 7), one('B', 0, 4, 2)];
    const rows = chart({ ...BASE, policy: 'MAX_UTILIZATION', numBlocks: 3, maxNumRequests: 8, requests });
    expect(rows.slice(4, 6)).toEqual(['A       C======', 'B       CppppppC']);
  });

  it.each([93, 92, 91, 1000, 99_000])('stays within 100 columns with %i iterations', (iterations) => {
    const requests = [one('a very long name of a request', 0, 1, iterations - 3), one('b', 0, 1, 3)];
    const rows = chart({ ...BASE, numBlocks: 25_000, maxNumRequests: 1, requests });
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(100);
    const perColumn = Math.ceil(iterations / (100 - 16 - 2));
    expect(rows.at(-1)).toBe(`Each column is ${perColumn} iterations.`);
    expect(rows[4]).toMatch(/^a very long nam… {2}C=+$/);
    expect(rows[5]).toMatch(/^b {17}\.+C?=?$/);
  });

  it('draws at most 50 requests and says how many there are', () => {
    const requests = Array.from({ length: 53 }, (_, index) => one(`r${index}`, 0, 1, 1));
    const rows = chart({ ...BASE, requests });
    expect(rows.filter((row) => /^r\d+ /.test(row))).toHaveLength(50);
    expect(rows).toContain('and 3 more requests');
  });

  it('lets no control character of an id reach the terminal', () => {
    expect(chart({ ...BASE, requests: [one('\x1b[2Jx', 0, 1, 1)] })[4]).toBe('?[2Jx   C');
  });
});
