import { mkdirSync } from 'node:fs';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { countOf, type FlagValues, listOf } from '../../compare/flags.js';
import { SHAPE_FLAGS, ShapeFile } from '../../compare/shape/shape-file.js';
import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { Random } from '../../support/random.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { positiveOf } from '../flags.js';
import { answersTo, compareFullBatch, type FullBatchPrompt } from '../speculation/full-batch.js';

const PROMPT_TOKENS = 64;
const HEAD = ['sequences', 'right', 'tokens/s without', 'with the head', 'ratio', 'draft tokens', 'accepted'];

const FLAGS = {
  shape: {
    ...SHAPE_FLAGS.shape,
    default: 'qwen3.5-0.8b',
    help: 'sizes of a Qwen3.5 with random weights (default qwen3.5-0.8b)',
  },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0', help: 'type of the matrices (default Q8_0)' },
  folder: SHAPE_FLAGS.folder,
  sequences: { argument: 'LIST', default: '1,8', help: 'sequences that generate side by side (default 1,8)' },
  rates: {
    argument: 'LIST',
    default: '0.9,0.8,0.6',
    help: 'shares of the drafted tokens that are right (default 0.9,0.8,0.6)',
  },
  steps: { argument: 'N', default: '200', help: 'steps of each side (default 200)' },
  threads: { argument: 'N', default: '', help: 'threads of the executor (default: as the server chooses)' },
} as const;
type Flags = FlagValues<typeof FLAGS>;

/**
 * Speed with the head of a Qwen3.5 that drafts. Its weights are random here, so what it draws is never right: its rounds run, and tokens
 * that are known to come take the place of those that it has drawn, each right with a given probability.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/speculation.md',
  sections: ['mtp'],
  async run(flags, output) {
    const file = new ShapeFile(flags, true);
    mkdirSync(flags.folder, { recursive: true });
    try {
      file.write();
      await compare(file, flags, output);
    } finally {
      file.remove();
    }
  },
});

async function compare(file: ShapeFile, flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const { path: model, cache: cacheDirectory } = file;
  const engine = await cachedEngine({ model, precision: 'auto', draftHead: true, cacheDirectory });
  const threads = flags.threads === '' ? undefined : countOf('threads', flags.threads);
  const steps = countOf('steps', flags.steps);
  const rows: string[][] = [];
  for (const count of listOf(flags.sequences).map((one) => countOf('sequences', one))) {
    const prompts = promptsOf(count, file.shape.vocabSize);
    const answers = await answersTo(engine.directory, prompts, { steps, threads });
    for (const rate of listOf(flags.rates).map((one) => positiveOf('rates', one))) {
      const options = { steps, threads, known: { answers, rate } };
      const result = await compareFullBatch(engine.directory, { speculate: 'mtp' }, prompts, options);
      const { without, withDrafts, ratio, interval, drafted, accepted } = result;
      const share = drafted === 0 ? '-' : `${((100 * accepted) / drafted).toFixed(0)} %`;
      const between = `${ratio.toFixed(3)} (${interval.map((end) => end.toFixed(3)).join(' to ')})`;
      const speeds = [without.toFixed(1), withDrafts.toFixed(1), between];
      rows.push([String(count), String(rate), ...speeds, String(drafted), share]);
      progress(tableRow(rows.at(-1)!));
    }
  }
  const { precision, outputPrecision } = engine.manifest;
  const conditions = `${file.name}: ${precision}, output ${outputPrecision} weights${threads === undefined ? '' : `, ${threads} threads`}; two engines in turns, ${steps} steps of each; the median of ratios over ten steps, and the interval that holds it in 95 of 100 resamplings`;
  report({ section: 'mtp', conditions, lines: [markdownTable(HEAD, rows)] });
}

function promptsOf(count: number, vocabSize: number): FullBatchPrompt[] {
  const random = new Random(7);
  const tokens = () => Int32Array.from({ length: PROMPT_TOKENS }, () => random.below(vocabSize));
  return Array.from({ length: count }, () => ({ tokens: tokens(), temperature: 0 }));
}
