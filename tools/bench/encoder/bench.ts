import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countOf, type FlagValues, listOf } from '../../compare/flags.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { roundsFlag, THREADS_FLAG } from '../flags.js';
import { partsTable } from './parts.js';
import type { Answer, OpenSide, Side } from './side.js';
import { sidesOf } from './sides.js';
import { encoderTable, type MeasuredSide, ratioTable } from './tables.js';
import { openCounter } from './token-counter.js';
import { makeWorkloads, type Workload } from './workloads.js';

const SHAPES = ['minilm', 'bge-base', 'modernbert-base', 'qwen3-embedding-0.6b', 'embeddinggemma'];
const PEER = 'default: the peer is left out';

const FLAGS = {
  models: { argument: 'DIR', default: '', help: 'the folder that make_models.py has filled' },
  shapes: {
    argument: 'LIST',
    default: SHAPES.join(','),
    help: `folders of models (default ${SHAPES.join(',')})`,
  },
  python: { argument: 'FILE', default: '', help: `a Python with sentence-transformers on torch (${PEER})` },
  openvino: { argument: 'FILE', default: '', help: `a Python with openvino and transformers (${PEER})` },
  node: { argument: 'DIR', default: '', help: `where @huggingface/transformers is installed (${PEER})` },
  'llama-server': { argument: 'FILE', default: '', help: `llama.cpp's server (${PEER})` },
  sides: {
    argument: 'LIST',
    default: '',
    help: 'only these sides, as in "Skein f32,torch f32" (default: all)',
  },
  counts: { argument: 'LIST', default: '1,32,1024', help: 'texts of a call (default 1,32,1024)' },
  lengths: {
    argument: 'LIST',
    default: '16,128,512,mixed',
    help: 'tokens of each text (default 16,128,512,mixed)',
  },
  'most-tokens': {
    argument: 'N',
    default: '8192',
    help: 'most tokens of a workload: what goes beyond is left out (default 8192)',
  },
  parts: { help: 'measure only what kinds of operation take of steps of Skein' },
  ...THREADS_FLAG,
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** A side that takes its turns, and has its model in memory for as long: all sides at once would not fit there. */
interface Turn extends MeasuredSide {
  side: Side;
}

/**
 * Texts a second of text encoders, compared with other programs that run them on a processor. Every side gets
 * the same texts, tokenizes them itself, holds its model in memory, and is timed over all calls of a
 * workload; the sides take turns.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/executors.md',
  sections: SHAPES.flatMap((shape) => [`encoder-${shape}`, `encoder-parts-${shape}`]),
  async run(flags, output) {
    if (flags.models === '' || !existsSync(flags.models))
      throw new Error(`--models: expected a folder filled by make_models.py, found '${flags.models}'.`);
    const run = flags.parts ? reportParts : compare;
    for (const shape of listOf(flags.shapes)) await run(flags, shape, output);
  },
});

async function compare(flags: Flags, shape: string, { progress, report }: BenchOutput): Promise<void> {
  const folder = join(flags.models, shape);
  const [threads, rounds] = [countOf('threads', flags.threads), countOf('rounds', flags.rounds)];
  const workloads = await workloadsOf(flags, folder);
  const { turns, missing } = await tryOut(flags, folder, threads);
  for (const line of missing) progress(`${shape}: ${line}`);
  await takeRounds(turns, rounds, async ({ name, answers, side }, round) => {
    const open = await side.open(folder);
    try {
      await measure(open, workloads, answers);
    } finally {
      await open.close();
    }
    progress(`${shape}, round ${round + 1}: ${name}`);
  });
  report({
    section: `encoder-${shape}`,
    conditions: conditionsOf(folder, shape, turns, { threads, rounds }),
    lines: paragraphs(
      encoderTable(workloads, turns),
      ratioTable(workloads, turns),
      missing.length === 0 ? null : `Left out: ${missing.join('; ')}`,
    ),
  });
}

/** Times all workloads on a side that has just been opened. */
async function measure(open: OpenSide, workloads: readonly Workload[], answers: Answer[][]): Promise<void> {
  // What opening leaves to be done, such as checking sums of weights, ends meanwhile.
  for (const { calls } of workloads) await open.embed([calls[0]!]);
  for (const [w, { calls }] of workloads.entries())
    answers[w] = [...(answers[w] ?? []), await open.embed(calls)];
}

async function reportParts(flags: Flags, shape: string, { report }: BenchOutput): Promise<void> {
  const folder = join(flags.models, shape);
  const threads = countOf('threads', flags.threads);
  const conditions = `${shape}, ${layersOf(folder)} layers, ${threads} threads`;
  report({ section: `encoder-parts-${shape}`, conditions, lines: [await partsTable(folder, threads)] });
}

const layersOf = (folder: string): number =>
  JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')).num_hidden_layers;

/** The parts that there are, with a line between two. */
function paragraphs(...parts: (string | null)[]): string[] {
  return parts.flatMap((part) => (part === null ? [] : [part, '']));
}

async function workloadsOf(flags: Flags, folder: string): Promise<Workload[]> {
  const counter = await openCounter(folder);
  const sizes = {
    counts: listOf(flags.counts).map((count) => countOf('counts', count)),
    lengths: listOf(flags.lengths).map((length) =>
      length === 'mixed' ? null : countOf('lengths', length, 4),
    ),
    mostTokens: countOf('most-tokens', flags['most-tokens']),
  };
  try {
    return await makeWorkloads(sizes, counter);
  } finally {
    await counter.close();
  }
}

/** Loads the model into each side, and closes it again. One that cannot run it is left out, with the reason. */
async function tryOut(flags: Flags, folder: string, threads: number) {
  const only = listOf(flags.sides);
  const turns: Turn[] = [];
  const missing: string[] = [];
  for (const side of sidesOf(flags, threads)) {
    if (only.length > 0 && !only.includes(side.name)) continue;
    try {
      const open = await side.open(folder);
      await open.close();
      const { name, precision, isSkein } = side;
      turns.push({ name, precision, isSkein, version: open.version, answers: [], side });
    } catch (error) {
      missing.push(`${side.name}: ${(error as Error).message.split('\n').at(-1)!.slice(0, 200)}`);
    }
  }
  return { turns, missing };
}

function conditionsOf(
  folder: string,
  shape: string,
  turns: readonly Turn[],
  { threads, rounds }: { threads: number; rounds: number },
): string {
  const versions = new Set(turns.filter(({ isSkein }) => !isSkein).map(({ version }) => version));
  const beside = versions.size === 0 ? '' : `; compared with ${[...versions].join(', ')}`;
  return `${shape}, ${layersOf(folder)} layers, ${threads} threads, medians of ${rounds} rounds in turn${beside}`;
}
