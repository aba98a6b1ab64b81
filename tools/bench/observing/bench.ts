import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { countOf } from '../../compare/flags.js';
import { addressOf } from '../../listening-server.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench } from '../bench.js';
import { positiveOf, roundsFlag, secondsFlag } from '../flags.js';

const FLAGS = {
  clients: { argument: 'N', default: '8', help: 'clients at once (default 8)' },
  ...secondsFlag(2),
  ...roundsFlag(9),
} as const;

/** A server in one way of being watched. */
interface Side {
  name: string;
  options: (collector: string, folder: string) => string[];
}

const SIDES: readonly Side[] = [
  { name: 'nothing: --no-metrics', options: () => ['--no-metrics'] },
  { name: 'metrics, as by default', options: () => [] },
  {
    name: 'and the log of access, to a file',
    options: (_, folder) => ['--access-log', '--log-file', join(folder, 'log')],
  },
  {
    name: 'and tracing, of nothing: --trace-rate 0',
    options: (url) => ['--trace-endpoint', url, '--trace-rate', '0'],
  },
  {
    name: 'and tracing of one request of 100',
    options: (url) => ['--trace-endpoint', url, '--trace-rate', '100'],
  },
  { name: 'and tracing of every request', options: (url) => ['--trace-endpoint', url] },
];

interface Running extends Side {
  child: ChildProcess;
  url: string;
  /** Microseconds of processor time of a request, one entry a round. */
  microseconds: number[];
}

const CLIENT = fileURLToPath(new URL('../infer/ask-tensors.mjs', import.meta.url));
const SERVER = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));
/** Of Linux, on all machines that Node.js runs on. */
const TICKS_PER_SECOND = 100;

const MODEL = `export const execute = (requests) => requests.map(({ inputs }) => ({ outputs: { OUTPUT0: inputs.INPUT0 } }));\n`;
const CONFIG =
  'backend: module\nmax_batch_size: 64\ninput: [{name: INPUT0, data_type: TYPE_FP32, dims: [-1]}]\noutput: [{name: OUTPUT0, data_type: TYPE_FP32, dims: [-1]}]\ndynamic_batching: {}\n';

/** Seconds of processor time that a process has had. */
function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function start(side: Side, collector: string, folder: string): Promise<Running> {
  const args = [SERVER, 'serve', '--port', '0', '--model-repository', join(folder, 'models')];
  const child = spawn(process.execPath, [...args, ...side.options(collector, folder)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return { ...side, child, url: await addressOf(child), microseconds: [] };
}

async function measure(
  { child, url, microseconds }: Running,
  clients: number,
  seconds: number,
): Promise<void> {
  const asked = { url, clients, model: 'identity', floats: 16, seconds, isBinary: true };
  const before = processorSeconds(child.pid!);
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, JSON.stringify(asked)]);
  const { perSecond } = JSON.parse(stdout) as { perSecond: number };
  microseconds.push((1e6 * (processorSeconds(child.pid!) - before)) / (perSecond * seconds));
}

/** What logs, metrics and traces cost a server: processor time of small requests for tensors, in each way of being watched. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['observing'],
  async run(flags, { progress, report }) {
    const [clients, seconds] = [countOf('clients', flags.clients), positiveOf('seconds', flags.seconds)];
    const folder = mkdtempSync(join(tmpdir(), 'skein-observing-'));
    mkdirSync(join(folder, 'models/identity/1'), { recursive: true });
    writeFileSync(join(folder, 'models/identity/config.yaml'), CONFIG);
    writeFileSync(join(folder, 'models/identity/1/model.mjs'), MODEL);
    const collector = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.end('{}'));
    });
    await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
    const sides = await Promise.all(SIDES.map((side) => start(side, url, folder)));
    try {
      for (const side of sides) await measure(side, clients, seconds); // so that all code is compiled
      for (const side of sides) side.microseconds.length = 0;
      await takeRounds(sides, countOf('rounds', flags.rounds), async (side, round) => {
        await measure(side, clients, seconds);
        progress(`round ${round + 1} of ${flags.rounds}: ${side.name}`);
      });
    } finally {
      for (const { child } of sides) child.kill('SIGKILL');
      collector.close();
      rmSync(folder, { recursive: true, force: true });
    }
    const [first] = sides as [Running];
    const ratio = ({ microseconds }: Running) =>
      median(microseconds.map((one, round) => one / first.microseconds[round]!)).toFixed(2);
    report({
      section: 'observing',
      conditions: `${clients} clients, 16 floats as binary data; medians of ${flags.rounds} rounds of ${flags.seconds} s in turns`,
      lines: [
        markdownTable(
          ['watched by', 'processor time of a request, us', 'compared with the first, by round'],
          sides.map((side) => [side.name, median(side.microseconds).toFixed(0), ratio(side)]),
        ),
      ],
    });
  },
});
