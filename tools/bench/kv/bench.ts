import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { kvBytesPerBlock } from '../../../kvcache/kv-cache-size.js';
import type { KvDtype } from '../../../kvcache/kv-dtype.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench, forEachKind } from '../bench.js';
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
const TOKENS_PER_BLOCK = 32;
/** f32 of 64 sequences with 2048 tokens would take 6 GB. */
const CACHE_BYTES_MAX = 4e9;

type Shape = (typeof SHAPES)[number];
interface Measured {
  type: KvDtype;
  stepMs: number;
  attentionMs: number;
  cacheBytes: number;
}

/** The step behind `context` tokens. Every block is written once before: pages that were never touched would share one. */
function generationStep(executor: NativeExecutor, engine: RandomEngine, { sequences, context }: Shape) {
  const blocksEach = Math.ceil((context + 1) / TOKENS_PER_BLOCK);
  const parts = Array.from({ length: sequences }, (_, s) => ({
    tokens: Array.from({ length: context + 1 }, (_, i) => (i * 7919) % 49152),
    cached: context,
    blocks: Array.from({ length: blocksEach }, (_, i) => s * blocksEach + i),
  }));
  const { inverseFrequencies } = engine;
  const options = { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies };
  const rows = Array.from({ length: sequences }, () => ({}));
  const [sampling, output] = [makeSamplingBatch(rows), makeSamplingOutput(sequences)];
  const newBlocks = parts.flatMap(({ blocks }) => blocks);
  executor.step(makeStepBatch(parts, { ...options, newBlocks }), sampling, output);
  const batch = makeStepBatch(parts, options);
  return () => executor.step(batch, sampling, output);
}

async function measure(
  engine: RandomEngine,
  shape: Shape,
  threads: number,
  steps: number,
): Promise<Measured[]> {
  const { sequences, context } = shape;
  const blocks = sequences * Math.ceil((context + 1) / TOKENS_PER_BLOCK);
  const bytesOf = (type: KvDtype, tokens: number) => kvBytesPerBlock(engine.plan.caches, tokens, type);
  const sides = TYPES.filter((type) => bytesOf(type, blocks * TOKENS_PER_BLOCK) <= CACHE_BYTES_MAX).map(
    (kvDtype) => {
      const executor = new NativeExecutor(engine, {
        ...{ threads, kvDtype, tokensPerBlock: TOKENS_PER_BLOCK, numBlocks: blocks, maxSeqLen: 8192 },
        ...{ maxNumTokens: 64, maxNumSequences: 64, maxLogitRows: 64 },
      });
      const step = generationStep(executor, engine, shape);
      return { kvDtype, executor, step, stepMs: [] as number[], attentionMs: [] as number[] };
    },
  );
  const turns = sequences * context > 1e5 ? steps : 5 * steps;
  await takeRounds(sides, turns, ({ executor, step, stepMs, attentionMs }) => {
    executor.profile(true);
    const begin = performance.now();
    step();
    stepMs.push(performance.now() - begin);
    attentionMs.push(executor.profile(false).attention! * 1000);
  });
  for (const { executor } of sides) executor.close();
  return sides.map(({ kvDtype: type, stepMs, attentionMs }) => {
    const cacheBytes = bytesOf(type, 1) * sequences * context;
    return { type, stepMs: Math.min(...stepMs), attentionMs: Math.min(...attentionMs), cacheBytes };
  });
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
  'beside bf16',
  'whole step, ms',
  'beside bf16',
];

/**
 * Time that the types of the KV cache cost, side by side, in under a minute. Random weights of SmolLM2-135M's shape; one
 * generation step of each executor in turns, the executor alone.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/kv-cache.md',
  sections: forEachKind('kv-cache'),
  async run(flags, { report }) {
    const [threads, steps] = [countOf('threads', flags.threads), countOf('steps', flags.steps)];
    const engine = makeRandomEngine('int4');
    try {
      const isa = instructionSetOf(engine);
      const rows: string[][] = [];
      for (const shape of SHAPES) rows.push(...rowsOf(shape, await measure(engine, shape, threads, steps)));
      report({
        section: `kv-cache-${isa.startsWith('avx512') ? 'avx512' : 'avx2'}`,
        conditions: `kernels of ${isa}, ${threads} threads, int4 weights; the fastest of ${steps} steps in turns, or of ${5 * steps} where contexts are short or single: other work only adds`,
        lines: [markdownTable(HEAD, rows)],
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
