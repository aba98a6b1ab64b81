import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { countOf } from '../../compare/flags.js';
import { median } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { positiveOf, secondsFlag } from '../flags.js';
import { makeRandomEngine } from './random-engine.js';
import { generation, prefill, TOKENS_PER_BLOCK, timesOf, type Work } from './work.js';

const FLAGS = {
  weights: { argument: 'TYPE', default: 'f32', help: 'f32, bf16, int8 or int4 (default f32)' },
  threads: { argument: 'N', default: '2', help: 'threads of the executor (default 2)' },
  ...secondsFlag(2),
} as const;

const MAX_NUM_TOKENS = 512;

/** Two lines: the median time of the work, and the mean time of each kind of operation in it. */
function measure(executor: NativeExecutor, work: Work, seconds: number): string[] {
  const { name, tokens } = work;
  const { times, parts } = timesOf(executor, work, seconds);
  const middle = median(times);
  const kinds = Object.entries(parts).sort((a, b) => b[1] - a[1]);
  const text = kinds.map(([kind, ms]) => `${kind} ${ms.toFixed(2)}`).join(', ');
  return [
    `${name}: ${((tokens * 1000) / middle).toFixed(0)} tokens/s, ${middle.toFixed(2)} ms (fastest ${Math.min(...times).toFixed(2)})`,
    `  ms on average: ${text}`,
  ];
}

/**
 * Time of an iteration, by kind of operation. Random weights of SmolLM2-135M's shape; generation at 1, 8, 32 and 64 sequences
 * with 128 tokens in the cache, and prompts of 128 tokens and of 1024 in two chunks of 512. The executor runs alone: no
 * checkpoint, no loop, no server.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: null,
  sections: [],
  run(flags, { progress, report }) {
    const precision = flags.weights as WeightPrecision;
    const threads = countOf('threads', flags.threads);
    const seconds = positiveOf('seconds', flags.seconds);
    const engine = makeRandomEngine(precision);
    const executor = new NativeExecutor(engine, {
      threads,
      maxNumTokens: MAX_NUM_TOKENS,
      maxNumSequences: 64,
      maxLogitRows: 64,
      maxSeqLen: 2048,
      numBlocks: 64 * 8,
      tokensPerBlock: TOKENS_PER_BLOCK,
      kvDtype: precision === 'f32' ? 'f32' : 'bf16',
    });
    try {
      const works = [
        ...[1, 8, 32, 64].map((count) => generation(engine, count)),
        generation(engine, 64, 0.8),
        ...[128, 1024].map((length) => prefill(engine, length, MAX_NUM_TOKENS)),
      ];
      const lines = works.flatMap((work) => {
        const found = measure(executor, work, seconds);
        progress(found[0]!);
        return found;
      });
      const { weightBytes, kvCacheBytes, workspaceBytes } = executor.memory();
      const bytes = [weightBytes, kvCacheBytes, workspaceBytes].map((count) => (count / 2 ** 20).toFixed(0));
      const conditions = `${precision} weights, kernels of ${executor.instructionSet}, ${threads} threads; MiB of weights, cache, workspace: ${bytes.join(', ')}`;
      report({ section: 'iteration', conditions, lines });
    } finally {
      executor.close();
      engine.remove();
    }
  },
});
