import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildEngine } from '../../../engine/building/builder.js';
import { type Engine, loadableEngine } from '../../../engine/building/engine.js';
import { openStoredEngine } from '../../../engine/building/stored-engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { countOf, type FlagValues, listOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { MODEL_FLAG, modelOf, roundsFlag, THREADS_FLAG } from '../flags.js';

const FLAGS = {
  ...MODEL_FLAG,
  sequences: { argument: 'LIST', default: '1,8', help: 'sequences of a step (default 1,8)' },
  context: { argument: 'N', default: '64', help: 'tokens of each sequence in the cache (default 64)' },
  steps: { argument: 'N', default: '8', help: 'steps of a round (default 8)' },
  ...THREADS_FLAG,
  ...roundsFlag(9),
} as const;
type Flags = FlagValues<typeof FLAGS>;

const TOKENS_PER_BLOCK = 32;

/** Opens an executor, and measures the processor time that this takes. */
function opened(engine: Engine, threads: number, sequences: number) {
  const before = process.cpuUsage();
  const executor = new NativeExecutor(loadableEngine(engine), {
    threads,
    maxNumTokens: 64,
    maxNumSequences: sequences,
    maxLogitRows: sequences,
    maxSeqLen: 512,
    numBlocks: sequences * 16,
    tokensPerBlock: TOKENS_PER_BLOCK,
    kvDtype: 'bf16',
  });
  return { executor, openMs: spentMs(before) };
}

function spentMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

async function run(flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'skein-stored-'));
  try {
    await compare(flags, folder, { progress, report });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(flags: Flags, folder: string, { progress, report }: BenchOutput): Promise<void> {
  const model = modelOf(flags);
  const counts = listOf(flags.sequences).map((text) => countOf('sequences', text));
  const threads = countOf('threads', flags.threads);
  const stored = openStoredEngine(model);
  const precision = 'stored';
  const outputDirectory = join(folder, 'engine');
  const packed = await buildEngine({ model, precision, outputPrecision: precision, outputDirectory });
  const most = Math.max(...counts);
  const both = [packed, stored].map((engine) => opened(engine, threads, most));
  const { inverseFrequencies } = ropeFrequencies(stored.manifest.config.rope);
  const context = countOf('context', flags.context);
  const steps = countOf('steps', flags.steps);
  const rows: string[][] = [];
  for (const count of counts) {
    const batch = makeStepBatch(
      Array.from({ length: count }, (_, s) => ({
        tokens: Array.from({ length: context + 1 }, (_, i) => 1 + ((i * 7 + s) % 50)),
        cached: context,
        blocks: Array.from({ length: Math.ceil((context + 1) / TOKENS_PER_BLOCK) }, (_, i) => s * 16 + i),
      })),
      { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies },
    );
    const [ofPacked, ofStored]: [number[], number[]] = [[], []];
    await takeRounds([0, 1], countOf('rounds', flags.rounds), (side) => {
      const before = process.cpuUsage();
      for (let step = 0; step < steps; step++) both[side]!.executor.forward(batch);
      [ofPacked, ofStored][side]!.push(spentMs(before) / steps);
    });
    progress(`${count} sequences: ${median(ofPacked)} and ${median(ofStored)} ms a step`);
    const ratios = ofPacked.map((ms, i) => ms / ofStored[i]!);
    const ms = (values: number[]) => median(values).toFixed(1);
    rows.push([String(count), ms(ofPacked), ms(ofStored), median(ratios).toFixed(2)]);
  }
  report({
    section: 'stored',
    conditions: `${threads} threads, processor time of all of them, medians of ${flags.rounds} rounds in turn`,
    lines: [
      markdownTable(['sequences', 'panels, ms a step', 'as stored, ms a step', 'speed'], rows),
      '',
      `Weights: ${both.map(({ executor }) => (executor.memory().weightBytes / 1e6).toFixed(1)).join(' and ')} MB; opening took ${both.map(({ openMs }) => openMs.toFixed(0)).join(' and ')} ms of processor time.`,
    ],
  });
  for (const { executor } of both) executor.close();
}

export const bench = defineBench({ flags: FLAGS, document: null, sections: [], run });
