import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench } from '../bench.js';
import { positiveOf, roundsFlag, secondsFlag } from '../flags.js';
import { startServer } from '../start/server-process.js';

const FLAGS = {
  clients: { argument: 'N', default: '1', help: 'clients at once (default 1)' },
  ...secondsFlag(3),
  ...roundsFlag(3),
} as const;

const IO = `max_batch_size: 8
input: [{name: INPUT0, data_type: TYPE_FP32, dims: [-1]}]
output: [{name: OUTPUT0, data_type: TYPE_FP32, dims: [-1]}]
`;
const IDENTITY =
  'export const execute = (all) => all.map(({ inputs }) => ({ outputs: { OUTPUT0: inputs.INPUT0 } }));';
const CLIENT = fileURLToPath(new URL('../infer/ask-tensors.mjs', import.meta.url));

/** Ensembles by their steps, all of the same member: 1 step shows what an ensemble costs over its part. */
const STEPS = [1, 2, 4];

interface Side {
  model: string;
  steps: number;
  /** Median milliseconds of a request, an entry a round. */
  p50: number[];
}

function ensembleOf(steps: number): string {
  const step = (i: number) => {
    const [from, to] = [i === 0 ? 'INPUT0' : `T${i}`, i === steps - 1 ? 'OUTPUT0' : `T${i + 1}`];
    return `{model_name: member, model_version: -1, input_map: {INPUT0: ${from}}, output_map: {OUTPUT0: ${to}}}`;
  };
  return `platform: ensemble\n${IO}ensemble_scheduling: {step: [${Array.from({ length: steps }, (_, i) => step(i)).join(', ')}]}\n`;
}

function writeModels(folder: string): void {
  const write = (name: string, config: string) => {
    mkdirSync(join(folder, name, '1'), { recursive: true });
    writeFileSync(join(folder, name, 'config.yaml'), config);
  };
  write('member', `backend: module\n${IO}`);
  writeFileSync(join(folder, 'member/1/model.mjs'), IDENTITY);
  for (const steps of STEPS) write(`steps-${steps}`, ensembleOf(steps));
}

/** Models of folders may come after the first sign of the server's health. */
async function untilReady(url: string): Promise<void> {
  while ((await fetch(url)).status !== 200) await sleep(50);
}

async function measure(url: string, model: string, clients: number, seconds: number): Promise<number> {
  const asked = JSON.stringify({ url, model, clients, floats: 16, seconds, isBinary: false });
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, asked]);
  return (JSON.parse(stdout) as { p50: number }).p50;
}

/**
 * What an ensemble costs over its parts: an identity model alone, and inside ensembles of one, two and four
 * steps.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['ensemble'],
  async run(flags, { progress, report }) {
    const [clients, seconds] = [countOf('clients', flags.clients), positiveOf('seconds', flags.seconds)];
    const folder = mkdtempSync(join(tmpdir(), 'skein-bench-ensemble-'));
    try {
      writeModels(folder);
      const server = await startServer(['--model-repository', folder]);
      const sides: Side[] = [
        { model: 'member', steps: 0, p50: [] },
        ...STEPS.map((steps) => ({ model: `steps-${steps}`, steps, p50: [] })),
      ];
      try {
        for (const { model } of sides) await untilReady(`${server.url}/v2/models/${model}/ready`);
        await takeRounds(sides, countOf('rounds', flags.rounds), async ({ model, p50 }, round) => {
          p50.push(await measure(server.url, model, clients, seconds));
          progress(`round ${round + 1} of ${flags.rounds}, ${model}`);
        });
      } finally {
        await server.stop();
      }
      report({
        section: 'ensemble',
        conditions: `16 floats in JSON, ${clients} client${clients === 1 ? '' : 's'}; medians of ${flags.rounds} rounds of ${flags.seconds} s in turns`,
        lines: [tableOf(sides)],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

function tableOf(sides: readonly Side[]): string {
  const [alone, one] = [median(sides[0]!.p50), median(sides[1]!.p50)];
  const rows = sides.map(({ steps, p50 }) => {
    const ms = median(p50);
    const over = steps === 0 ? '' : (one - alone).toFixed(3);
    const further = steps < 2 ? '' : ((ms - one) / (steps - 1)).toFixed(3);
    return [
      steps === 0 ? 'the member alone' : `${steps} step${steps === 1 ? '' : 's'}`,
      ms.toFixed(3),
      steps === 1 ? over : '',
      further,
    ];
  });
  return markdownTable(
    [
      'asked',
      'ms of a request',
      'ms of the first step over the member',
      'ms of a further step, the member included',
    ],
    rows,
  );
}
