import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROUTING_POLICIES } from '../../../cluster/simulation/cluster-types.js';
import { clusterLoad } from '../../../src/commands/cluster-flags.js';
import { simulatePolicy } from '../../../src/commands/simulate-cluster.js';
import { markdownTable } from '../../support/markdown-table.js';
import { foundIn, policyChart } from './policy-chart.js';

// Writes docs/images/routing-policies.svg, and prints the numbers: what each way of choosing a worker does at a rising load. The same on every
// machine, since it is simulated.

const WORKERS = 32;
/** Requests a second for each worker. */
const RATES = [0.25, 0.5, 0.75, 1, 1.5, 2];
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
const x = { places: RATES.map(String), xTitle: 'requests a second for each worker' };
const picture = policyChart(
  'What five ways of choosing a worker do at a rising load',
  x,
  (routing) => results.find((one) => one.routing === routing)!.byRate,
);
writeFileSync(fileURLToPath(new URL('../../../docs/images/routing-policies.svg', import.meta.url)), picture);
const rows = results.flatMap(({ routing, byRate }) => [
  [routing, 'found', ...byRate.map((one) => `${foundIn(one).toFixed(0)} %`)],
  ['', 'p50', ...byRate.map(({ firstTokenMs }) => `${(firstTokenMs.p50 / 1000).toFixed(2)} s`)],
  ['', 'p90', ...byRate.map(({ firstTokenMs }) => `${(firstTokenMs.p90 / 1000).toFixed(2)} s`)],
]);
process.stdout.write(`${markdownTable(['routing', '', ...x.places], rows)}\n`);
