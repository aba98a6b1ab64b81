import type { ModelOptions, Skein } from '../../../src/index.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { MODEL_FLAG, modelOf, positiveOf, roundsFlag, secondsFlag } from '../flags.js';

const FLAGS = {
  ...MODEL_FLAG,
  weights: { argument: 'A,B', default: 'bf16,int8', help: 'weights of the two models (default bf16,int8)' },
  streams: { argument: 'N', default: '16', help: 'answers at a time of a busy model (default 16)' },
  ...secondsFlag(6),
  ...roundsFlag(3),
} as const;

/** The answers that a busy model gives, and those that one user of the other model asks for. */
const BUSY = { prompt: 64, answer: 64 };
const SMALL = { prompt: 32, answer: 16 };
/** The prompts of a flood are long ones, whose iterations take longest. */
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
  forMs: number,
  work: (untilMs: number) => Promise<unknown>,
): Promise<number[]> {
  const counted = models.map(() => 0);
  const startMs = performance.now();
  const untilMs = startMs + forMs;
  const stops = models.map((model, index) =>
    model.onStats(({ contextTokens, generatedTokens }) => {
      if (performance.now() <= untilMs) counted[index]! += contextTokens + generatedTokens;
    }),
  );
  await work(untilMs);
  for (const stop of stops) stop();
  return counted.map((count) => (1000 * count) / forMs);
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

interface Setting {
  /** Precisions of the weights of the first and of the second model. */
  weights: readonly string[];
  /** Answers at a time of a busy model. */
  streams: number;
  /** Length of each measurement. */
  forMs: number;
}

async function round(
  load: (weights: string) => Promise<Skein>,
  { weights, streams, forMs }: Setting,
): Promise<Round> {
  const first = await load(weights[0]!);
  await ask(first, FLOOD);
  const [alone] = await rates([first], forMs, (until) => keepBusy(first, streams, BUSY, until));
  const small = await keepBusy(first, 1, SMALL, performance.now() + forMs);
  const second = await load(weights[1]!);
  await ask(second, FLOOD);
  const [besideIdle] = await rates([first], forMs, (until) => keepBusy(first, streams, BUSY, until));
  const [otherAlone] = await rates([second], forMs, (until) => keepBusy(second, streams, BUSY, until));
  const both = await rates([first, second], forMs, (until) =>
    Promise.all([first, second].map((model) => keepBusy(model, streams, BUSY, until))),
  );
  const beside = async (count: number, other: Load) => {
    const untilMs = performance.now() + forMs;
    const [latencies] = await Promise.all([
      keepBusy(first, 1, SMALL, untilMs),
      keepBusy(second, count, other, untilMs),
    ]);
    return latencies;
  };
  const smallBusy = await beside(streams, BUSY);
  const smallFlood = await beside(2 * streams, FLOOD);
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

function table(rounds: readonly Round[], { weights: [a, b], streams }: Setting): string {
  const of = (pick: (one: Round) => number) => median(rounds.map(pick));
  const share = (pick: (one: Round) => number) => `${(100 * of(pick)).toFixed(0)} %`;
  const rate = (pick: (one: Round) => number) => `${of(pick).toFixed(0)} tokens/s`;
  const latencies = (name: 'small' | 'smallBusy' | 'smallFlood') => {
    const all = rounds.flatMap((one) => one[name]);
    return [0.5, 0.99].map((at) => quantile(all, at).toFixed(0)).join(' / ');
  };
  const first = (one: Round) => one.both[0] / one.besideIdle;
  const second = (one: Round) => one.both[1] / one.otherAlone;
  const rows = [
    ['first, alone in the process', rate((one) => one.alone)],
    [
      'first, the second loaded and idle',
      `${rate((one) => one.besideIdle)} (${share((one) => one.besideIdle / one.alone)})`,
    ],
    ['second, the first idle', rate((one) => one.otherAlone)],
    [
      'both busy: of what each does with the other idle',
      `${share(first)} and ${share(second)}, together ${share((one) => first(one) + second(one))}`,
    ],
    [
      `first, one user (prompt ${SMALL.prompt}, ${SMALL.answer} tokens), p50 / p99`,
      `${latencies('small')} ms alone`,
    ],
    ['the same next to the second, busy', `${latencies('smallBusy')} ms`],
    [
      `the same next to a flood of prompts of ${FLOOD.prompt} tokens (${2 * streams} at a time)`,
      `${latencies('smallFlood')} ms`,
    ],
  ];
  return markdownTable([`${streams} streams a busy model; ${a} is the first, ${b} the second`, ''], rows, 2);
}

/** Speed that models of one process take from each other: two of them share the processors by turns. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/batching.md',
  sections: ['models'],
  async run(flags, { progress, report }) {
    const model = modelOf(flags);
    const setting: Setting = {
      weights: flags.weights.split(','),
      streams: countOf('streams', flags.streams),
      forMs: 1000 * positiveOf('seconds', flags.seconds),
    };
    const { Skein: Loader } = await compiled<typeof import('../../../src/index.js')>('src/index.js');
    const load = (precision: string) =>
      Loader.load({
        model,
        weights: precision as ModelOptions['weights'],
        kvCacheTokens: 65_536,
        chunkedPrefill: true,
        prefixCaching: false,
      });
    const rounds: Round[] = [];
    for (let i = 0; i < countOf('rounds', flags.rounds); i++) {
      rounds.push(await round(load, setting));
      const { alone, besideIdle, otherAlone, both } = rounds.at(-1)!;
      progress(`round ${i + 1}: ${JSON.stringify({ alone, besideIdle, otherAlone, both })}`);
    }
    report({
      section: 'models',
      conditions: `${process.version}, medians of ${rounds.length} rounds`,
      lines: [table(rounds, setting)],
    });
  },
});
