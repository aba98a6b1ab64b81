import { ROUTING_POLICIES, type RoutingPolicy } from '../../../cluster/simulation/cluster-types.js';
import type { PolicyResult } from '../../../src/commands/simulate-cluster.js';
import { type ChartLine, lineChart } from '../../support/line-chart.js';

const COLORS = {
  random: '#888888',
  'fewest-requests': '#c77700',
  queue: '#2a78d6',
  'queue-cache': '#8a4fc9',
  cache: '#1f8a4c',
} as const satisfies Record<RoutingPolicy, string>;

/** Share of the prompt tokens that caches had, in percent. */
export const foundIn = ({ cachedTokens, promptTokens }: PolicyResult) => (100 * cachedTokens) / promptTokens;

/**
 * What each way of choosing a worker finds in caches, and the 90th percentile of its first tokens, in a picture.
 * @param places on the x axis @param resultsOf a way's results, one for each place @param policies the ways that are shown
 */
export function policyChart(
  title: string,
  { places, xTitle }: { places: readonly string[]; xTitle: string },
  resultsOf: (routing: RoutingPolicy) => readonly PolicyResult[],
  policies: readonly RoutingPolicy[] = ROUTING_POLICIES,
): string {
  const lines = (of: (result: PolicyResult) => number): ChartLine[] =>
    policies.map((routing) => ({
      name: routing,
      color: COLORS[routing],
      values: resultsOf(routing).map(of),
    }));
  const x = { places, xTitle };
  return lineChart(title, [
    {
      ...{ title: 'prompt tokens found in a cache', ...x, isLogarithmic: false, lines: lines(foundIn) },
      ticks: [0, 20, 40, 60, 80, 100].map((value) => ({ value, text: `${value} %` })),
    },
    {
      ...{ title: 'first token, 90th percentile', ...x, isLogarithmic: true },
      lines: lines(({ firstTokenMs }) => firstTokenMs.p90 / 1000),
      ticks: [0.1, 0.3, 1, 3, 10, 30, 100].map((value) => ({ value, text: `${value} s` })),
    },
  ]);
}
