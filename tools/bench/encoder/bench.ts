import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Encoder as EncoderClass } from '../../../src/library/encoder.js';
import { countOf } from '../../compare/flags.js';
import { Random } from '../../soak/random.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { modelOf, positiveOf, roundsFlag, THREADS_FLAG } from '../flags.js';

const FLAGS = {
  model: {
    argument: 'DIR',
    default: process.env.SKEIN_TEST_ENCODER ?? '',
    help: 'folder with all-MiniLM-L6-v2 (default: SKEIN_TEST_ENCODER)',
  },
  python: {
    argument: 'FILE',
    default: '',
    help: 'a Python with torch and transformers (default: Skein alone)',
  },
  ...THREADS_FLAG,
  ...roundsFlag(3),
  scale: { argument: 'N', default: '1', help: 'share of the texts that are embedded (default 1)' },
} as const;

interface Measured {
  name: string;
  seconds: number[];
  tokens: number;
  /** The embedding of the first text. */
  first: number[];
}

interface Bed {
  model: string;
  python: string;
  threads: number;
  rounds: number;
  /** A temporary folder. */
  folder: string;
}

/**
 * Texts and tokens a second of all-MiniLM-L6-v2, beside transformers on torch, in one run on one machine. Every side gets
 * the same texts, tokenizes them itself, and is timed over all of a workload.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: null,
  sections: [],
  async run(flags, { progress, report }) {
    const folder = mkdtempSync(join(tmpdir(), 'skein-encoder-bench-'));
    const { python } = flags;
    const [threads, rounds] = [countOf('threads', flags.threads), countOf('rounds', flags.rounds)];
    try {
      const bed: Bed = { model: modelOf(flags), python, threads, rounds, folder };
      const all = workloads(positiveOf('scale', flags.scale));
      const sides = new Map<string, Measured[]>();
      for (const side of python === '' ? [] : ['torch-f32', 'torch-bf16'])
        sides.set(side, peer(bed, side, all));
      // The peers count the tokens: they tokenize with Hugging Face's own library.
      const tokens = [...sides.values()][0]?.map((one) => one.tokens);
      for (const weights of ['f32', 'bf16', 'int8'] as const) {
        sides.set(`Skein ${weights}`, await skein(bed, weights, all, tokens));
        progress(`Skein ${weights} done`);
      }
      report({
        section: 'encoder',
        conditions: `${threads} threads, medians of ${rounds}: texts/s (tokens/s)`,
        lines: [table(all, sides)],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

function peer(bed: Bed, side: string, all: readonly Workload[]): Measured[] {
  const { model, python, threads, rounds, folder } = bed;
  const file = join(folder, 'workloads.json');
  writeFileSync(file, JSON.stringify(all));
  const script = fileURLToPath(new URL('./peer_bench.py', import.meta.url));
  const flags = ['--side', side, '--threads', String(threads), '--rounds', String(rounds)];
  const output = execFileSync(python, [script, model, file, ...flags], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1 << 28,
  });
  return output
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Measured);
}

async function skein(
  { model, threads, rounds, folder }: Bed,
  weights: 'f32' | 'bf16' | 'int8',
  all: readonly Workload[],
  tokens: readonly number[] | undefined,
): Promise<Measured[]> {
  const { Encoder } = await compiled<{ Encoder: typeof EncoderClass }>('src/index.js');
  const encoder = await Encoder.load({ model, weights, threads, cacheDir: join(folder, 'cache') });
  const measured: Measured[] = [];
  for (const [i, { name, texts }] of all.entries()) {
    await encoder.embed(texts.slice(0, 64));
    const seconds: number[] = [];
    let first: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const start = performance.now();
      const rows = await encoder.embed(texts);
      seconds.push((performance.now() - start) / 1000);
      first = [...rows[0]!];
    }
    measured.push({ name, seconds, tokens: tokens?.[i] ?? 0, first });
  }
  await encoder.close();
  return measured;
}

function table(all: readonly Workload[], sides: ReadonlyMap<string, Measured[]>): string {
  const exact = sides.get('torch-f32') ?? sides.get('Skein f32')!;
  const rows = [...sides].map(([side, measured]) => {
    const cells = measured.map(({ seconds, tokens }, i) => {
      const middle = median(seconds);
      return `${Math.round(all[i]!.texts.length / middle)} (${Math.round(tokens / middle)})`;
    });
    const cosines = measured.map(({ first }, i) => cosine(first, exact[i]!.first));
    return [side, ...cells, Math.min(...cosines).toFixed(5)];
  });
  const head = ['side', ...all.map(({ name, texts }) => `${name}, ${texts.length} texts`), 'cosine'];
  return markdownTable(head, rows);
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** Texts of one kind, by the number of their words. */
export interface Workload {
  name: string;
  texts: string[];
}

const WORDS =
  'the engine serves many users of one model from a single machine while requests join and leave between two steps without padding so that short texts never wait for long ones and every answer stays what it would be alone'.split(
    ' ',
  );

/** The same texts for every side and every run. */
export function workloads(scale: number): Workload[] {
  const random = new Random(11);
  const make = (count: number, least: number, most: number) =>
    Array.from({ length: Math.max(8, Math.round(count * scale)) }, () =>
      Array.from({ length: random.integer(least, most) }, () => random.pick(WORDS)).join(' '),
    );
  return [
    { name: 'short: 6 to 14 words', texts: make(1024, 6, 14) },
    { name: 'ragged: 4 to 180 words', texts: make(256, 4, 180) },
    { name: 'long: 180 words', texts: make(128, 180, 180) },
  ];
}
