// Texts and tokens a second of all-MiniLM-L6-v2, beside transformers on torch, in one run on one machine:
//
//   npx tsx tools/encoder-bench/main.ts --model DIR [--python PYTHON] [--threads 2] [--rounds 3] [--scale 1]
//
// Every side gets the same texts, tokenizes them itself, and is timed over all of a workload. Prints a table in Markdown.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Encoder as EncoderClass } from '../../src/encoder.js';
import { median } from '../support/statistics.js';
import { type Workload, workloads } from './texts.js';

interface Measured {
  name: string;
  seconds: number[];
  tokens: number;
  /** The first text's embedding. */
  first: number[];
}

// The compiled one: its thread runs JavaScript. `npm run build` makes it.
const compiled = new URL('../../dist/src/index.js', import.meta.url).href;
const { Encoder } = (await import(compiled)) as { Encoder: typeof EncoderClass };

const { values } = parseArgs({
  options: {
    model: { type: 'string' },
    python: { type: 'string', default: '' },
    threads: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
  },
});
if (values.model === undefined)
  throw new Error('encoder-bench needs --model, a folder with all-MiniLM-L6-v2.');
const { model, python } = values;
const [threads, rounds] = [Number(values.threads), Number(values.rounds)];
const folder = mkdtempSync(join(tmpdir(), 'skein-encoder-bench-'));
try {
  const all = workloads(Number(values.scale));
  const sides = new Map<string, Measured[]>();
  for (const side of python === '' ? [] : ['torch-f32', 'torch-bf16']) sides.set(side, peer(side, all));
  // The peers count the tokens: they tokenize with Hugging Face's own library.
  const tokens = [...sides.values()][0]?.map((one) => one.tokens);
  for (const weights of ['f32', 'bf16', 'int8'] as const) {
    sides.set(`Skein ${weights}`, await skein(weights, all, tokens));
  }
  print(all, sides);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function peer(side: string, all: readonly Workload[]): Measured[] {
  const file = join(folder, 'workloads.json');
  writeFileSync(file, JSON.stringify(all));
  const script = fileURLToPath(new URL('./peer_bench.py', import.meta.url));
  const flags = ['--side', side, '--threads', String(threads), '--rounds', String(rounds)];
  const output = execFileSync(python, [script, model!, file, ...flags], {
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
  weights: 'f32' | 'bf16' | 'int8',
  all: readonly Workload[],
  tokens: readonly number[] | undefined,
): Promise<Measured[]> {
  const encoder = await Encoder.load({ model: model!, weights, threads, cacheDir: join(folder, 'cache') });
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

function print(all: readonly Workload[], sides: ReadonlyMap<string, Measured[]>): void {
  const exact = sides.get('torch-f32') ?? sides.get('Skein f32')!;
  console.log(`${cpus()[0]!.model}, ${threads} threads, medians of ${rounds}: texts/s (tokens/s)\n`);
  console.log(
    `| side | ${all.map(({ name, texts }) => `${name}, ${texts.length} texts`).join(' | ')} | cosine |`,
  );
  console.log(`|---|${'---:|'.repeat(all.length + 1)}`);
  for (const [side, measured] of sides) {
    const cells = measured.map(({ seconds, tokens }, i) => {
      const middle = median(seconds);
      return `${Math.round(all[i]!.texts.length / middle)} (${Math.round(tokens / middle)})`;
    });
    const cosines = measured.map(({ first }, i) => cosine(first, exact[i]!.first));
    console.log(`| ${side} | ${cells.join(' | ')} | ${Math.min(...cosines).toFixed(5)} |`);
  }
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
