import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROUTING_POLICIES } from '../../../cluster/simulation/cluster-types.js';
import type { ClusterLoad } from '../../../src/commands/cluster-flags.js';
import type { PolicyResult } from '../../../src/commands/simulate-cluster.js';
import { policyChart } from './policy-chart.js';

// Writes docs/images/routing-scale.svg: what ways of choosing a worker do with more and more workers, each of which has as much to do. It is made of files, since
// the largest ones take minutes: for WORKERS of 10, 100, 1000 and 10000
//
//   skein simulate --workers WORKERS --requests (10 * WORKERS) --json > FILE        or, for each ROUTING, --routing ROUTING ... > FILE
//
//   npx tsx tools/bench/routing/scale-picture.ts FILE...

interface Run {
  load: ClusterLoad;
  results: PolicyResult[];
}

const runs = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, 'utf8')) as Run);
const workers = [...new Set(runs.map(({ load }) => load.workers))].sort((a, b) => a - b);
/** Queues with room for all are no different from a router: one of the two with few, and one without, will do. */
const SHOWN = ROUTING_POLICIES.filter((routing) => routing !== 'queue-cache');
const found = SHOWN.map((routing) => ({
  routing,
  byWorkers: workers.map((count) => {
    const run = runs.find(
      ({ load, results }) => load.workers === count && results.some((one) => one.routing === routing),
    );
    if (run === undefined) throw new Error(`No file has ${count} workers with the routing ${routing}.`);
    return run.results.find((one) => one.routing === routing)!;
  }),
}));
const picture = policyChart(
  'What four ways of choosing a worker do with 10 to 10,000 workers',
  {
    places: workers.map((count) => (count < 1000 ? `${count}` : `${count / 1000}k`)),
    xTitle: 'workers, each with 10 requests in 10 seconds',
  },
  (routing) => found.find((one) => one.routing === routing)!.byWorkers,
  SHOWN,
);
writeFileSync(fileURLToPath(new URL('../../../docs/images/routing-scale.svg', import.meta.url)), picture);
