import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench, forEachKind, sectionOfKernels } from '../bench.js';
import { makeRandomEngine, type RandomEngine } from '../iteration/random-engine.js';

const FLAGS = {
  threads: { argument: 'N', default: '2', help: 'threads of the executor (default 2)' },
  steps: {
    argument: 'N',
    default: '9',
    help: 'steps of each with the longest contexts, others have five times as many; the fastest counts (default 9)',
  },
} as const;

const TYPES: readonly KvDtype[] = ['f32', 'bf16', 'int8'];
const SHAPES = [
  { sequences: 64, context: 2048 },
  { sequences: 1, context: 8128 },
  { sequences: 64, context: 128 },
];
/** Shapes whose sequences share their first tokens, as those with one system prompt do. */
const SHARED_SHAPES = [
  { sequences: 64, context: 2048, shared: 1920 },
  { sequences: 16, context: 2048, shared: 1920 },
  { sequences: 64, context: 512, shared: 384 },
  { sequences: 64, context: 256, shared: 96 },
  { sequences: 4, context: 2048, shared: 1024 },
];
const TOKENS_PER_BLOCK = 32;
/** f32 of 64 sequences with 2048 tokens would take 6 GB. */
const CACHE_BYTES_MAX = 4e9;

interface Shape {
  sequences: number;
  context: number;
  /** First tokens whose blocks all sequences share; default: none. */
  shared?: number;
}
interface Measured {
  type: KvDtype;
  stepMs: number;
  attentionMs: number;
  cacheBytes: number;
}

/**
 * The step after `context` tokens. Every block is written once before: pages that were never touched would
 * share one.
 */
function generationStep(executor: NativeExecutor, engine: RandomEngine, shape: Shape) {
  const { sequences, context, shared = 0 } = shape;
  const blocksEach = Math.ceil((context + 1) / TOKENS_PER_BLOCK);
  const ofAll = shared / TOKENS_PER_BLOCK;
  const parts = Array.from({ length: sequences }, (_, s) => ({
    tokens: Array.from({ length: context + 1 }, (_, i) => (i * 7919) % 49152),
    cached: context,
    blocks: Array.from({ length: blocksEach }, (_, i) => (i < ofAll ? 0 : s) * blocksEach + i),
  }));
  const { inverseFrequencies } = engine;
  const options = { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies };
  const rows = Array.from({ length: sequences }, () => ({}));
  const [sampling, output] = [makeSamplingBatch(rows), makeSamplingOutput(sequences)];
  const newBlocks = [...new Set(parts.flatMap(({ blocks }) => blocks))];
  executor.step(makeStepBatch(parts, { ...options, newBlocks }), sampling, output);
  const batch = makeStepBatch(parts, options);
  return () => executor.step(batch, sampling, output);
}

interface Side {
  executor: NativeExecutor;
  step: () => void;
}

function makeSide(engine: RandomEngine, shape: Shape, threads: number, kvDtype: KvDtype): Side {
  const numBlocks = shape.sequences * Math.ceil((shape.context + 1) / TOKENS_PER_BLOCK);
  const executor = new NativeExecutor(engine, {
    ...{ threads, kvDtype, tokensPerBlock: TOKENS_PER_BLOCK, numBlocks, maxSeqLen: 8192 },
    ...{ maxNumTokens: 64, maxNumSequences: 64, maxLogitRows: 64 },
  });
  return { executor, step: generationStep(executor, engine, shape) };
}

/** Steps of all sides in turns; the fastest of each. */
async function fastestOf(
  sides: readonly Side[],
  turns: number,
): Promise<{ stepMs: number; attentionMs: number }[]> {
  const times = sides.map((side) => ({ ...side, stepMs: [] as number[], attentionMs: [] as number[] }));
  await takeRounds(times, turns, ({ executor, step, stepMs, attentionMs }) => {
    executor.profile(true);
    const begin = performance.now();
    step();
    stepMs.push(performance.now() - begin);
    attentionMs.push(executor.profile(false).attention! * 1000);
  });
  for (const { executor } of sides) executor.close();
  return times.map(({ stepMs, attentionMs }) => ({
    stepMs: Math.min(...stepMs),
    attentionMs: Math.min(...attentionMs),
  }));
}

const turnsOf = ({ sequences, context }: Shape, steps: number) =>
  sequences * context > 1e5 ? steps : 5 * steps;

async function measure(
  engine: RandomEngine,
  shape: Shape,
  threads: number,
  steps: number,
): Promise<Measured[]> {
  const { sequences, context } = shape;
  const blocks = sequences * Math.ceil((context + 1) / TOKENS_PER_BLOCK);
  const bytesOf = (type: KvDtype, tokens: number) => kvBytesPerBlock(engine.plan.caches, tokens, type);
  const types = TYPES.filter((type) => bytesOf(type, blocks * TOKENS_PER_BLOCK) <= CACHE_BYTES_MAX);
  const sides = types.map((type) => makeSide(engine, shape, threads, type));
  const fastest = await fastestOf(sides, turnsOf(shape, steps));
  return types.map((type, i) => ({
    ...{ type, ...fastest[i]! },
    cacheBytes: bytesOf(type, 1) * sequences * context,
  }));
}

/** A row of the table of shared prefixes for each type. */
async function sharedRows(
  engine: RandomEngine,
  shape: Required<Shape>,
  threads: number,
  steps: number,
): Promise<string[][]> {
  const rows: string[][] = [];
  for (const type of ['bf16', 'int8'] as const) {
    const shapes = [{ ...shape, shared: 0 }, shape];
    const sides = shapes.map((one) => makeSide(engine, one, threads, type));
    const [apart, together] = await fastestOf(sides, turnsOf(shape, steps));
    rows.push([
      `${shape.sequences} x ${shape.context}, ${shape.shared} shared, ${type}`,
      apart!.attentionMs.toFixed(2),
      together!.attentionMs.toFixed(2),
      (apart!.attentionMs / together!.attentionMs).toFixed(2),
      (apart!.stepMs / together!.stepMs).toFixed(2),
    ]);
  }
  return rows;
}

function rowsOf({ sequences, context }: Shape, measured: readonly Measured[]): string[][] {
  const bf16 = measured.find(({ type }) => type === 'bf16')!;
  return measured.map(({ type, stepMs, attentionMs, cacheBytes }) => [
    `${sequences} x ${context}, ${type}`,
    `${(cacheBytes / 1e6).toFixed(0)} MB`,
    attentionMs.toFixed(1),
    (cacheBytes / attentionMs / 1e6).toFixed(1),
    (bf16.attentionMs / attentionMs).toFixed(2),
    stepMs.toFixed(1),
    (bf16.stepMs / stepMs).toFixed(2),
  ]);
}

const HEAD = [
  'sequences x tokens, cache',
  'its bytes',
  'attention, ms of a step',
  'GB/s of it',
  'compared with bf16',
  'whole step, ms',
  'compared with bf16',
];

const SHARED_HEAD = [
  'sequences x tokens, cache',
  'attention apart, ms of a step',
  'together, ms',
  'ratio',
  'ratio of whole steps',
];

/**
 * Time that the types of the KV cache cost, and what shared prefixes save, side by side, in two minutes. Random weights of SmolLM2-135M's shape; one
 * generation step of each executor in turns, the executor alone.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/kv-cache.md',
  sections: forEachKind('kv-cache', 'shared-prefixes'),
  async run(flags, { report }) {
    const [threads, steps] = [countOf('threads', flags.threads), countOf('steps', flags.steps)];
    const engine = makeRandomEngine('int4');
    try {
      const isa = instructionSetOf(engine);
      const rows: string[][] = [];
      for (const shape of SHAPES) rows.push(...rowsOf(shape, await measure(engine, shape, threads, steps)));
      const conditions = `kernels of ${isa}, ${threads} threads, int4 weights; the fastest of ${steps} steps in turns, or of ${5 * steps} where contexts are short or single: other work only adds`;
      report({ section: sectionOfKernels('kv-cache', isa), conditions, lines: [markdownTable(HEAD, rows)] });
      const shared: string[][] = [];
      for (const shape of SHARED_SHAPES) shared.push(...(await sharedRows(engine, shape, threads, steps)));
      report({
        section: sectionOfKernels('shared-prefixes', isa),
        conditions,
        lines: [markdownTable(SHARED_HEAD, shared)],
      });
    } finally {
      engine.remove();
    }
  },
});

/** The instruction set of the kernels that an executor of this machine runs. */
function instructionSetOf(engine: RandomEngine): string {
  const probe = new NativeExecutor(engine, {
    ...{ threads: 1, kvDtype: 'bf16', tokensPerBlock: 32, numBlocks: 1, maxSeqLen: 32 },
    ...{ maxNumTokens: 1, maxNumSequences: 1, maxLogitRows: 1 },
  });
  const { instructionSet } = probe;
  probe.close();
  return instructionSet;
}
