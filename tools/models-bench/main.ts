/**
 * What models of one process take from each other: two of them share the processors by turns. As a Markdown table.
 *
 *     npm run build:ts && npx tsx tools/models-bench/main.ts --model DIR_OR_GGUF            prints the table
 *     npm run build:ts && npx tsx tools/models-bench/main.ts --model DIR_OR_GGUF --write    writes it into BENCHMARKS.md
 */

import { describeMachine, machineLine } from '../../base/machine.js';
import type { ModelOptions, Skein } from '../../src/index.js';
import { flagsOrHelp, SIDES_FLAGS, TABLE_FLAGS } from '../compare/flags.js';
import { writeSection } from '../document-section.js';
import { median } from '../support/statistics.js';

const flags =
  flagsOrHelp(
    {
      model: SIDES_FLAGS.model,
      weights: { argument: 'A,B', default: 'bf16,int8', help: 'of the two (default bf16,int8)' },
      streams: { argument: 'N', default: '16', help: 'answers at a time of a busy model (default 16)' },
      seconds: { argument: 'N', default: '6', help: 'of each measurement (default 6)' },
      ...TABLE_FLAGS,
    },
    'Measures two models in one process and prints a Markdown table.',
  ) ?? process.exit(0);

const MS = 1000 * Number(flags.seconds);
const STREAMS = Number(flags.streams);
/** Answers of a busy model, and what one user of the other one asks for. */
const BUSY = { prompt: 64, answer: 64 };
const SMALL = { prompt: 32, answer: 16 };
/** Prompts of a flood: long ones, whose iterations take longest. */
const FLOOD = { prompt: 1500, answer: 32 };

type Load = typeof BUSY;

/** Different tokens for every prompt, so that no cache helps. */
let drawn = 1;
function tokens(count: number): number[] {
  return Array.from({ length: count }, () => {
    drawn = (drawn * 48271) % 2147483647;
    return 100 + (drawn % 40_000);
  });
}

async function ask(model: Skein, { prompt, answer }: Load): Promise<number> {
  const startMs = performance.now();
  await model.complete({ promptTokens: tokens(prompt), maxTokens: answer, ignoreEos: true, temperature: 0 });
  return performance.now() - startMs;
}

/** `streams` answers at a time until `untilMs`; returns what each took. */
async function keepBusy(model: Skein, streams: number, load: Load, untilMs: number): Promise<number[]> {
  const latencies: number[] = [];
  const one = async () => {
    while (performance.now() < untilMs) latencies.push(await ask(model, load));
  };
  await Promise.all(Array.from({ length: streams }, one));
  return latencies;
}

/** Tokens per second, of prompts and answers, that each of the models computes while `work` runs. */
async function rates(
  models: readonly Skein[],
  work: (untilMs: number) => Promise<unknown>,
): Promise<number[]> {
  const counted = models.map(() => 0);
  const startMs = performance.now();
  const untilMs = startMs + MS;
  const stops = models.map((model, index) =>
    model.onStats(({ contextTokens, generatedTokens }) => {
      if (performance.now() <= untilMs) counted[index]! += contextTokens + generatedTokens;
    }),
  );
  await work(untilMs);
  for (const stop of stops) stop();
  return counted.map((count) => (1000 * count) / MS);
}

interface Round {
  alone: number;
  besideIdle: number;
  otherAlone: number;
  both: [number, number];
  small: number[];
  smallBusy: number[];
  smallFlood: number[];
}

/** As a user has it: compiled, since workers run from there. */
async function skeinClass(): Promise<typeof Skein> {
  const compiled = new URL('../../dist/src/index.js', import.meta.url).href;
  return ((await import(compiled)) as typeof import('../../src/index.js')).Skein;
}

async function round(load: (weights: string) => Promise<Skein>, weights: readonly string[]): Promise<Round> {
  const first = await load(weights[0]!);
  await ask(first, FLOOD);
  const [alone] = await rates([first], (until) => keepBusy(first, STREAMS, BUSY, until));
  const small = await keepBusy(first, 1, SMALL, performance.now() + MS);
  const second = await load(weights[1]!);
  await ask(second, FLOOD);
  const [besideIdle] = await rates([first], (until) => keepBusy(first, STREAMS, BUSY, until));
  const [otherAlone] = await rates([second], (until) => keepBusy(second, STREAMS, BUSY, until));
  const both = await rates([first, second], (until) =>
    Promise.all([first, second].map((model) => keepBusy(model, STREAMS, BUSY, until))),
  );
  const beside = async (streams: number, other: Load) => {
    const untilMs = performance.now() + MS;
    const [latencies] = await Promise.all([
      keepBusy(first, 1, SMALL, untilMs),
      keepBusy(second, streams, other, untilMs),
    ]);
    return latencies;
  };
  const smallBusy = await beside(STREAMS, BUSY);
  const smallFlood = await beside(2 * STREAMS, FLOOD);
  await Promise.all([first.close(), second.close()]);
  return {
    alone: alone!,
    besideIdle: besideIdle!,
    otherAlone: otherAlone!,
    both: both as [number, number],
    small,
    smallBusy,
    smallFlood,
  };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

function table(rounds: readonly Round[], [a, b]: readonly string[]): string {
  const of = (pick: (one: Round) => number) => median(rounds.map(pick));
  const share = (pick: (one: Round) => number) => `${(100 * of(pick)).toFixed(0)} %`;
  const row = (what: string, value: string) => `| ${what} | ${value} |`;
  const latencies = (name: 'small' | 'smallBusy' | 'smallFlood') =>
    [0.5, 0.99]
      .map((at) =>
        quantile(
          rounds.flatMap((one) => one[name]),
          at,
        ).toFixed(0),
      )
      .join(' / ');
  const first = (one: Round) => one.both[0] / one.besideIdle;
  const second = (one: Round) => one.both[1] / one.otherAlone;
  return [
    `| ${STREAMS} streams a busy model; ${a} is the first, ${b} the second | |`,
    '|---|---|',
    row('first, alone in the process', `${of((one) => one.alone).toFixed(0)} tokens/s`),
    row(
      'first, the second loaded and idle',
      `${of((one) => one.besideIdle).toFixed(0)} tokens/s (${share((one) => one.besideIdle / one.alone)})`,
    ),
    row('second, the first idle', `${of((one) => one.otherAlone).toFixed(0)} tokens/s`),
    row(
      'both busy: of what each does with the other idle',
      `${share(first)} and ${share(second)}, together ${share((one) => first(one) + second(one))}`,
    ),
    row(
      `first, one user (prompt ${SMALL.prompt}, ${SMALL.answer} tokens), p50 / p99`,
      `${latencies('small')} ms alone`,
    ),
    row('the same beside the second, busy', `${latencies('smallBusy')} ms`),
    row(
      `the same beside a flood of prompts of ${FLOOD.prompt} tokens (${2 * STREAMS} at a time)`,
      `${latencies('smallFlood')} ms`,
    ),
  ].join('\n');
}

async function main(): Promise<void> {
  if (flags.model === '') throw new Error('--model is required.');
  const weights = flags.weights.split(',');
  const Loader = await skeinClass();
  const load = (precision: string) =>
    Loader.load({
      model: flags.model,
      weights: precision as ModelOptions['weights'],
      maxTokens: 65_536,
      enableChunkedContext: true,
      enableBlockReuse: false,
    });
  const rounds: Round[] = [];
  for (let i = 0; i < Number(flags.rounds); i++) {
    rounds.push(await round(load, weights));
    process.stderr.write(
      `round ${i + 1}: ${JSON.stringify({ ...rounds.at(-1), small: undefined, smallBusy: undefined, smallFlood: undefined })}\n`,
    );
  }
  const text = `${machineLine(describeMachine())}; ${process.version}, medians of ${rounds.length} rounds. ${flags.note}\n\n${table(rounds, weights)}`;
  process.stdout.write(`${text}\n`);
  if (flags.write) writeSection('BENCHMARKS.md', 'models', text);
}

await main();
