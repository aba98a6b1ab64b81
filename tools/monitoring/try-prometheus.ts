// Lets a real Prometheus scrape a real server under load, and asks it every query of vLLM's boards, of our own
// dashboard, and of dashboards given as files:
//
//   npx tsx tools/monitoring/try-prometheus.ts --model MODEL [--seconds 60] [DASHBOARD.json ...]
//
// It needs `prometheus` and `promtool` in the PATH (Debian: apt install prometheus) and a built dist/. Prints a table;
// exit code 1 where a query has no data and no reason for that, or an alert is no rule.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { addressOf } from '../listening-server.js';
import { freePort } from '../support/free-port.js';
import { boardReport, reportText } from './board-report.js';
import { grafanaDashboard } from './dashboard.js';
import { dashboardQueries } from './dashboard-queries.js';
import { loadServer } from './load.js';
import { ask, filledIn } from './prometheus-answers.js';
import { STOCK_BOARDS } from './stock/stock-boards.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: 'string' }, seconds: { type: 'string', default: '60' } },
});
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Every variable of the boards; those that choose take all there is. */
const VARIABLES = {
  ...Object.fromEntries(
    ['job', 'model_name', 'instance', 'engine', 'model', 'MODEL', 'Deployment_id'].map((name) => [
      name,
      '.*',
    ]),
  ),
  ...{ NS: 'default', SVC: 'skein', ttft_slo: '1.0', tpot_slo: '0.1' },
  ...{ __rate_interval: '20s', __interval: '20s', __range: `${values.seconds}s` },
};

/** Prometheus' configuration: a scrape a second, with the labels that it adds in Kubernetes. */
const configuration = (target: string) => `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [${JSON.stringify(here('alerts.yml'))}]
scrape_configs:
  - job_name: skein
    static_configs:
      - targets: [${JSON.stringify(target)}]
        labels: { namespace: default, service: skein, pod: skein-0, endpoint: service-port }
`;

/** Resolves when the condition holds. @throws Error naming what was waited for where it takes a minute */
async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(250)) {
    if (await condition().catch(() => false)) return;
  }
  throw new Error(`There was no ${what} within a minute.`);
}

/** The boards with their queries. */
function boards(): [string, readonly string[]][] {
  const own = dashboardQueries(grafanaDashboard());
  const given = positionals.map((path): [string, string[]] => {
    return [basename(path), dashboardQueries(JSON.parse(readFileSync(path, 'utf8')))];
  });
  return [['grafana-dashboard.json, our own', own], ...Object.entries(STOCK_BOARDS), ...given];
}

async function report(prometheus: string, model: string): Promise<boolean> {
  const reports = [];
  for (const [board, queries] of boards()) {
    const answers = [];
    for (const query of new Set(queries)) {
      // One board takes a single model by its name; the others a pattern.
      const filled = filledIn(query.replaceAll('="$model_name"', `="${model}"`), VARIABLES);
      answers.push([query, await ask(prometheus, filled)] as const);
    }
    reports.push(boardReport(board, answers));
  }
  process.stdout.write(reportText(reports));
  const faults = reports.flatMap(({ board, unanswered }) => unanswered.map((one) => ({ board, ...one })));
  const without = faults.filter(({ why }) => why === null);
  for (const { board, query, answer } of without) {
    process.stdout.write(
      `\n${board}: ${answer.kind}${answer.kind === 'fault' ? `: ${answer.words}` : ''}\n    ${query}\n`,
    );
  }
  return without.length === 0;
}

const folder = mkdtempSync(join(tmpdir(), 'skein-prometheus-'));
const children: ChildProcess[] = [];
try {
  execFileSync('promtool', ['check', 'rules', here('alerts.yml')], { stdio: 'inherit' });
  const model = values.model === undefined ? [] : ['--model', values.model];
  const flags = ['--served-model-name', 'tried', '--speculate', 'ngram', '--enable-lora', '--port', '0'];
  const server = spawn(process.execPath, [here('../../dist/bin/skein.js'), 'serve', ...model, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(server);
  const url = await addressOf(server);
  const port = await freePort();
  const config = join(folder, 'prometheus.yml');
  writeFileSync(config, configuration(new URL(url).host));
  children.push(
    spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${folder}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    ),
  );
  const prometheus = `http://127.0.0.1:${port}`;
  await until('scrape', async () => (await ask(prometheus, 'up == 1')).kind === 'data');
  const end = Date.now() + Number(values.seconds) * 1000;
  let isOver = false;
  const load = loadServer(url, 'tried', () => isOver);
  await Promise.race([load, sleep(end - Date.now())]);
  process.exitCode = (await report(prometheus, 'tried')) ? 0 : 1;
  isOver = true;
  await load;
} finally {
  for (const child of children) child.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}
