import { mkdirSync } from 'node:fs';
import { loadableEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { kvBytesPerBlock, stateBytesPerSlot } from '../../../kvcache/kv-cache-size.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { countOf, type FlagValues, listOf } from '../../compare/flags.js';
import { SHAPE_FLAGS, ShapeFile } from '../../compare/shape/shape-file.js';
import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { positiveOf, secondsFlag } from '../flags.js';
import {
  generation,
  prefill,
  TOKENS_PER_BLOCK,
  timesOf,
  type Work,
  type WorkEngine,
} from '../iteration/work.js';

const FLAGS = {
  shapes: {
    argument: 'LIST',
    default: 'qwen3.5-0.8b,qwen3-0.6b,qwen3.5-4b,qwen3-4b',
    help: 'shapes of npm run bench:compare -- --shape (default qwen3.5-0.8b,qwen3-0.6b,qwen3.5-4b,qwen3-4b)',
  },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0', help: 'type of the matrices (default Q8_0)' },
  folder: SHAPE_FLAGS.folder,
  threads: { argument: 'N', default: '2', help: 'threads of the executor (default 2)' },
  ...secondsFlag(4),
} as const;
type Flags = FlagValues<typeof FLAGS>;

const CHUNK = 512;
const SEQUENCES = [1, 8, 32, 64];
const PROMPTS = [128, 1024, 4096];
const KV_DTYPE = 'bf16';
/** Ops that go over the tokens of a sequence one after the other. */
const SCANS = ['gatedDelta', 'selectiveScan', 'shortConv'];
const HEAD = ['model', 'work', 'tokens/s', 'ms', 'of it scans', 'attention', 'products'];

/**
 * Steps of models with states compared with steps of models of their size that attend in all layers: time,
 * the share of it that scans take, and what a sequence keeps. Random weights; 128 tokens in the cache of
 * generating sequences; prompts in chunks of 512.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/states.md',
  sections: ['states'],
  async run(flags, output) {
    mkdirSync(flags.folder, { recursive: true });
    const rows: string[][] = [];
    const kept: string[] = [];
    for (const shape of listOf(flags.shapes)) await measureShape({ ...flags, shape }, output, rows, kept);
    const conditions = `${flags.threads} threads, ${flags.type} weights, ${KV_DTYPE} cache; the executor alone, medians of ${flags.seconds} s each`;
    output.report({
      section: 'states',
      conditions,
      lines: [markdownTable(HEAD, rows), '', 'What a sequence keeps:', '', ...kept],
    });
  },
});

async function measureShape(
  flags: Flags & { shape: string },
  { progress }: Pick<BenchOutput, 'progress'>,
  rows: string[][],
  kept: string[],
): Promise<void> {
  const file = new ShapeFile(flags);
  try {
    file.write();
    const engine = await cachedEngine({ model: file.path, precision: 'auto', cacheDirectory: file.cache });
    const executor = new NativeExecutor(loadableEngine(engine), {
      threads: countOf('threads', flags.threads),
      maxNumTokens: CHUNK,
      maxNumSequences: Math.max(...SEQUENCES),
      maxLogitRows: Math.max(...SEQUENCES),
      maxSeqLen: Math.max(...PROMPTS),
      numBlocks: Math.max(...SEQUENCES) * 8,
      ...(engine.plan.states !== undefined && { numStateSlots: Math.max(...SEQUENCES) }),
      tokensPerBlock: TOKENS_PER_BLOCK,
      kvDtype: KV_DTYPE,
    });
    const { inverseFrequencies } = ropeFrequencies(engine.manifest.config.rope);
    for (const work of worksOf({ inverseFrequencies })) {
      rows.push([file.name, ...measured(executor, work, positiveOf('seconds', flags.seconds))]);
      progress(tableRow(rows.at(-1)!));
    }
    kept.push(keptBy(file.name, engine.plan));
    executor.close();
  } finally {
    file.remove();
  }
}

const worksOf = (engine: WorkEngine): Work[] => [
  ...SEQUENCES.map((count) => generation(engine, count)),
  ...PROMPTS.map((length) => prefill(engine, length, CHUNK)),
];

function measured(executor: NativeExecutor, work: Work, seconds: number): string[] {
  const { times, parts } = timesOf(executor, work, seconds);
  const all = Object.values(parts).reduce((sum, ms) => sum + ms, 0);
  const share = (names: readonly string[]) =>
    `${((100 * names.reduce((sum, name) => sum + (parts[name] ?? 0), 0)) / all).toFixed(1)} %`;
  const ms = median(times);
  return [
    work.name,
    ((work.tokens * 1000) / ms).toFixed(0),
    ms.toFixed(1),
    share(SCANS),
    share(['attention']),
    share(['linear', 'gatedLinear', 'logits']),
  ];
}

/** States of a sequence, once as it runs and once for each snapshot, and what it keeps of a token. */
function keptBy(name: string, { caches, states = [] }: NetworkPlan): string {
  const ofToken = kvBytesPerBlock(caches, TOKENS_PER_BLOCK, KV_DTYPE) / TOKENS_PER_BLOCK;
  const ofStates =
    states.length === 0 ? 'no states' : `${(stateBytesPerSlot(states) / 2 ** 20).toFixed(1)} MiB of states`;
  return `- ${name}: ${ofStates}, ${(ofToken / 1024).toFixed(0)} KiB a token`;
}
