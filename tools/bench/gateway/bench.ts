import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench } from '../bench.js';
import { roundsFlag } from '../flags.js';
import type { GatewayCost, GatewayLoad } from './load.js';

const FLAGS = {
  workers: { argument: 'LIST', default: '10,1000,10000', help: 'numbers of workers (default 10,1000,10000)' },
  routing: { argument: 'LIST', default: 'any,cache', help: 'ways of choosing workers (default any,cache)' },
  running: {
    argument: 'N',
    default: '2048',
    help: 'requests of the gateway that run at once (default 2048)',
  },
  waiting: { argument: 'N', default: '256', help: 'requests that wait in it besides (default 256)' },
  tokens: { argument: 'N', default: '100', help: 'tokens of an answer (default 100)' },
  'token-ms': { argument: 'MS', default: '50', help: 'milliseconds between two of them (default 50)' },
  seconds: { argument: 'N', default: '10', help: 'length of each measurement (default 10)' },
  'whole-cards': { help: "each beat has the model's card, as those of workers of before" },
  ...roundsFlag(3),
} as const;

const HEAD = ['workers', '`--routing`', 'ms a request', 'of which beats', 'as simulated', 'longest turn'];

/** The gateway as JavaScript without a loader of TypeScript, which gives each closure its name and so makes it dearer than it is. */
const PROGRAM = join(tmpdir(), `skein-gateway-${process.pid}.mjs`);

async function compileProgram(): Promise<void> {
  const entry = fileURLToPath(new URL('./measure.ts', import.meta.url));
  await build({ entryPoints: [entry], outfile: PROGRAM, bundle: true, format: 'esm', platform: 'node' });
}

interface Run {
  load: GatewayLoad;
  /** An entry for each round. */
  costs: GatewayCost[];
}

/** Each in a process of its own: none has a heap that another one has filled. */
async function measure(load: GatewayLoad): Promise<GatewayCost> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, JSON.stringify(load)]);
  return JSON.parse(stdout) as GatewayCost;
}

function runsOf(flags: FlagValues<typeof FLAGS>): Run[] {
  const count = (name: 'running' | 'waiting' | 'tokens' | 'token-ms' | 'seconds') =>
    countOf(name, flags[name]);
  const load = {
    ...{ running: count('running'), waiting: count('waiting'), tokens: count('tokens') },
    ...{ tokenMs: count('token-ms'), seconds: count('seconds'), wholeCards: flags['whole-cards'] },
  };
  const workers = flags.workers.split(',').map((text) => countOf('workers', text));
  return (flags.routing.split(',') as GatewayLoad['routing'][]).flatMap((routing) =>
    workers.map((count) => ({ load: { ...load, workers: count, routing }, costs: [] })),
  );
}

function row({ load: { workers, routing }, costs }: Run): string[] {
  const of = (cost: keyof GatewayCost) => median(costs.map((one) => one[cost]));
  const longest = Math.max(...costs.map(({ longestMs }) => longestMs));
  return [
    ...[String(workers), `\`${routing}\``, of('msPerRequest').toFixed(2), of('beatMsPerRequest').toFixed(3)],
    ...[of('simulatedMsPerRequest').toFixed(2), `${longest.toFixed(1)} ms`],
  ];
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['gateway'],
  async run(flags, output) {
    const runs = runsOf(flags);
    await compileProgram();
    try {
      await takeRounds(runs, countOf('rounds', flags.rounds), async ({ load, costs }, round) => {
        costs.push(await measure(load));
        const { workers, routing } = load;
        output.progress(
          `round ${round + 1}: ${workers} workers, ${routing}: ${JSON.stringify(costs.at(-1))}`,
        );
      });
    } finally {
      rmSync(PROGRAM, { force: true });
    }
    output.report({
      section: 'gateway',
      conditions: `${flags.running} answers of ${flags.tokens} tokens at once, a token every ${flags['token-ms']} ms, ${flags.waiting} requests waiting besides; medians of ${flags.rounds} rounds in turns, the longest turn of all`,
      lines: [markdownTable(HEAD, runs.map(row))],
    });
  },
});
