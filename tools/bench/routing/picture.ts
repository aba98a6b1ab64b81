import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROUTING_POLICIES } from '../../../host/simulation/cluster-types.js';
import { clusterLoad } from '../../../src/commands/cluster-flags.js';
import { type PolicyResult, simulatePolicy } from '../../../src/commands/simulate-cluster.js';
import { type ChartLine, lineChart } from '../../support/line-chart.js';
import { markdownTable } from '../../support/markdown-table.js';

// Writes docs/images/routing-policies.svg, and prints the numbers: what each way of choosing a worker does at a rising load. The same on every
// machine, since it is simulated.

const WORKERS = 32;
/** Requests a second for each worker. */
const RATES = [0.25, 0.5, 0.75, 1, 1.5, 2];
const COLORS = {
  random: '#888888',
  'fewest-requests': '#c77700',
  queue: '#2a78d6',
  cache: '#1f8a4c',
} as const;
const FLAGS = { workers: String(WORKERS), requests: '2000', prefixes: '160' };

const results = ROUTING_POLICIES.map((routing) => ({
  routing,
  byRate: RATES.map((rate) => {
    const result = simulatePolicy(clusterLoad({ ...FLAGS, rate: String(WORKERS * rate) }), routing);
    process.stderr.write(
      `${routing} at ${rate}: first token p90 ${(result.firstTokenMs.p90 / 1000).toFixed(2)} s\n`,
    );
    return result;
  }),
}));
const foundIn = ({ cachedTokens, promptTokens }: PolicyResult) => (100 * cachedTokens) / promptTokens;
const lines = (of: (result: PolicyResult) => number): ChartLine[] =>
  results.map(({ routing, byRate }) => ({ name: routing, color: COLORS[routing], values: byRate.map(of) }));
const x = { places: RATES.map(String), xTitle: 'requests a second for each worker' };
const picture = lineChart('What four ways of choosing a worker do at a rising load', [
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
writeFileSync(fileURLToPath(new URL('../../../docs/images/routing-policies.svg', import.meta.url)), picture);
const rows = results.flatMap(({ routing, byRate }) => [
  [routing, 'found', ...byRate.map((one) => `${foundIn(one).toFixed(0)} %`)],
  ['', 'p50', ...byRate.map(({ firstTokenMs }) => `${(firstTokenMs.p50 / 1000).toFixed(2)} s`)],
  ['', 'p90', ...byRate.map(({ firstTokenMs }) => `${(firstTokenMs.p90 / 1000).toFixed(2)} s`)],
]);
process.stdout.write(`${markdownTable(['routing', '', ...x.places], rows)}\n`);
