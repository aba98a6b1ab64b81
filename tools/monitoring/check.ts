// Says which queries of a Grafana dashboard a running server would leave without an answer:
//
//   npx tsx tools/monitoring/check.ts [DASHBOARD.json] [--url http://127.0.0.1:8000]
//
// The dashboard is the one next to this file, or any other, such as vLLM's own. Exit code 1 where a query
// reads a series or a label that /metrics does not have.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { dashboardQueries, queryFaults } from './dashboard-queries.js';
import { parseExposition } from './exposition.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string', default: 'http://127.0.0.1:8000' } },
});
const path = positionals[0] ?? new URL('grafana-dashboard.json', import.meta.url);
const queries = dashboardQueries(JSON.parse(readFileSync(path, 'utf8')));
const families = parseExposition(await (await fetch(`${values.url}/metrics`)).text());
let unanswered = 0;
for (const query of queries) {
  const faults = queryFaults(query, families);
  if (faults.length === 0) continue;
  unanswered++;
  process.stdout.write(`${query}\n${faults.map((fault) => `    ${fault}\n`).join('')}`);
}
process.stdout.write(`${queries.length - unanswered} of ${queries.length} queries are answered\n`);
process.exitCode = unanswered === 0 ? 0 : 1;
