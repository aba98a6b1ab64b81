import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import { countOf, listOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { multipliesPairs } from '../../support/test-engine.js';
import { defineBench, forEachKind, sectionOfKernels } from '../bench.js';
import { positiveOf, secondsFlag } from '../flags.js';
import { CONFIG, makeRandomEngine, type RandomEngine } from '../iteration/random-engine.js';
import { prefill, TOKENS_PER_BLOCK, timesOf } from '../iteration/work.js';
import { loadKernels, tableOfSet } from '../kernel/hooks.js';
import { peakOfThreads } from './peak-of-threads.js';

const FLAGS = {
  weights: { argument: 'TYPE', default: 'int4', help: 'bf16, int8 or int4 (default int4)' },
  lengths: {
    argument: 'LIST',
    default: '128,512,1024,2048',
    help: 'tokens of a prompt (default 128,512,1024,2048)',
  },
  threads: { argument: 'N', default: '2', help: 'threads of the executor (default 2)' },
  ...secondsFlag(3),
} as const;

/** Tokens of a step, as in the loop. */
const CHUNK = 512;
const CACHES: readonly KvDtype[] = ['bf16', 'int8'];
const WEIGHTS: readonly WeightPrecision[] = ['bf16', 'int8', 'int4'];

/** Operations (multiplications and additions) of the layers' products for one token. */
const PRODUCTS = (() => {
  const { hiddenSize: hidden, intermediateSize, numHeads, numKvHeads, headDim, numLayers } = CONFIG;
  const attention = (2 * numHeads + 2 * numKvHeads) * headDim * hidden;
  return 2 * numLayers * (attention + 3 * hidden * intermediateSize);
})();

/** Operations of attention for a prompt: each token's scores and values over all tokens up to it. */
function attentionOf(length: number): number {
  return ((length * (length + 1)) / 2) * 4 * CONFIG.numHeads * CONFIG.headDim * CONFIG.numLayers;
}

interface Rates {
  products: number;
  /** Of attention over a bf16 cache: pairs of bf16 where the processor has them, else f32. */
  attention: number;
}

async function ratesOf(isa: InstructionSet, weights: WeightPrecision, threads: number): Promise<Rates> {
  const table = tableOfSet(loadKernels(), isa);
  return {
    products: await peakOfThreads(table, weights, threads),
    attention: await peakOfThreads(table, multipliesPairs(isa) ? 'bf16' : 'f32', threads),
  };
}

function openExecutor(
  engine: RandomEngine,
  threads: number,
  kvDtype: KvDtype,
  longest: number,
): NativeExecutor {
  return new NativeExecutor(engine, {
    threads,
    maxNumTokens: CHUNK,
    maxNumSequences: 1,
    maxLogitRows: 1,
    maxSeqLen: longest,
    numBlocks: Math.ceil(longest / TOKENS_PER_BLOCK),
    tokensPerBlock: TOKENS_PER_BLOCK,
    kvDtype,
  });
}

/**
 * Prompts of SmolLM2-135M's shape through the executor alone, in chunks of 512, compared with loops of the
 * same instructions that use only registers, on as many threads at once: the products of the weights' format,
 * and attention over a bf16 cache in f32 or pairs of bf16. Attention over an int8 cache multiplies words and
 * has no such loop.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/kernels.md',
  sections: [...forEachKind('prompts'), 'prompts-amx'],
  async run(flags, { progress, report }) {
    const weights = WEIGHTS.find((precision) => precision === flags.weights);
    if (weights === undefined)
      throw new Error(`--weights: expected one of ${WEIGHTS.join(', ')}, found '${flags.weights}'.`);
    const threads = countOf('threads', flags.threads);
    const seconds = positiveOf('seconds', flags.seconds);
    const lengths = listOf(flags.lengths).map((length) => countOf('lengths', length));
    const engine = makeRandomEngine(weights);
    const rows: string[][] = [];
    let isa = '';
    try {
      for (const cache of CACHES) {
        const executor = openExecutor(engine, threads, cache, Math.max(...lengths));
        try {
          isa = executor.instructionSet;
          for (const length of lengths) {
            // Measured with each prompt, since the clock of a machine drifts.
            const rates = await ratesOf(executor.instructionSet, weights, threads);
            rows.push(rowOf(executor, engine, { cache, length, seconds, rates }));
            progress(rows.at(-1)!.join(' | '));
          }
        } finally {
          executor.close();
        }
      }
    } finally {
      engine.remove();
    }
    report({
      section: sectionOfKernels('prompts', isa, ['amx']),
      conditions: `kernels of ${isa}, ${threads} threads, ${weights} weights of SmolLM2-135M's shape, chunks of ${CHUNK}; medians`,
      lines: [markdownTable(HEAD, rows)],
    });
  },
});

const HEAD = [
  'tokens, cache',
  'tokens/s',
  'ms',
  'products, ms',
  'of registers',
  'attention, ms',
  'of registers',
  'attention of all',
  'all, of registers',
];

interface Case {
  cache: KvDtype;
  length: number;
  seconds: number;
  rates: Rates;
}

function rowOf(
  executor: NativeExecutor,
  engine: RandomEngine,
  { cache, length, seconds, rates }: Case,
): string[] {
  const { times, parts } = timesOf(executor, prefill(engine, length, CHUNK), seconds);
  const ms = median(times);
  const products = parts.linear! + parts.gatedLinear!;
  const attention = parts.attention!;
  const leastProducts = (PRODUCTS * length) / rates.products / 1e6;
  const leastAttention = attentionOf(length) / rates.attention / 1e6;
  const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(0)} %`;
  const hasLoop = cache === 'bf16';
  return [
    `${length}, ${cache}`,
    ((length * 1000) / ms).toFixed(0),
    ms.toFixed(1),
    products.toFixed(1),
    share(leastProducts, products),
    attention.toFixed(1),
    hasLoop ? share(leastAttention, attention) : '',
    share(attention, ms),
    hasLoop ? share(leastProducts + leastAttention, ms) : '',
  ];
}
