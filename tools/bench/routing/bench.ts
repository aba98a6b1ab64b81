import { ClusterSimulation } from '../../../cluster/simulation/cluster-simulation.js';
import type { ClusterResult, RoutingPolicy } from '../../../cluster/simulation/cluster-types.js';
import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { seededRandom } from '../../support/random.js';
import { defineBench } from '../bench.js';
import { MODEL_FLAG, positiveOf, roundsFlag } from '../flags.js';
import { measureRealWorkers, REAL_CONDITIONS, realSentence } from './real-workers.js';

const FLAGS = {
  model: {
    ...MODEL_FLAG.model,
    help: 'model of the real workers; none: nothing but simulated ones (default: SKEIN_TEST_MODEL)',
  },
  ...roundsFlag(5),
  workers: { argument: 'N', default: '8', help: 'workers (default 8)' },
  requests: { argument: 'N', default: '3000', help: 'requests (default 3000)' },
  rate: { argument: 'N', default: '8', help: 'requests a second over all workers (default 8)' },
  prefixes: { argument: 'N', default: '40', help: 'system prompts that requests begin with (default 40)' },
  blocks: { argument: 'N', default: '600', help: 'blocks of 32 tokens in each cache (default 600)' },
} as const;

/** The work queue is no router: docs/simulate.md compares it with them. */
const POLICIES = {
  random: 'at random',
  'fewest-requests': 'where the fewest requests are',
  cache: 'by caches',
} satisfies Partial<Record<RoutingPolicy, string>>;
const PREFIX_TOKENS = 1024;
const OWN_TOKENS = 128;
const NEW_TOKENS = 64;
const TURNS = 3;
/** SmolLM2-135M on two cores with AVX2: 600 prompt tokens a second, and about 200 generated ones. */
const PACE = { iterationMs: 1, contextTokenMs: 0.8, generationMs: 3 };
const SEED = 26;

function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

function row(name: string, { requests, contextTokens }: ClusterResult, promptTokens: number): string[] {
  const hits = [...requests].reduce((sum, { cachedTokens }) => sum + cachedTokens, 0) / promptTokens;
  const first = requests.firstTokenMs.sort();
  const last = requests.lastTokenMs.sort();
  const seconds = (ms: number) => (ms / 1000).toFixed(2);
  return [
    name,
    `${(100 * hits).toFixed(1)} %`,
    (contextTokens / 1e6).toFixed(2),
    ...[0.5, 0.9, 0.99].map((share) => seconds(percentile(first, share))),
    seconds(percentile(last, 0.5)),
  ];
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'BENCHMARKS.md',
  sections: ['routing'],
  async run(flags, { progress, report }) {
    const workers = countOf('workers', flags.workers);
    const rate = positiveOf('rate', flags.rate);
    const prefixes = countOf('prefixes', flags.prefixes);
    const numBlocks = countOf('blocks', flags.blocks);
    const arrivals = [
      ...sharedPrefixTrace({
        ...{ requests: countOf('requests', flags.requests), rate, prefixes },
        ...{ prefixTokens: PREFIX_TOKENS, ownTokens: OWN_TOKENS, maxNewTokens: NEW_TOKENS, turns: TURNS },
        random: seededRandom(SEED),
      }),
    ];
    const promptTokens = arrivals.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const rows = (Object.keys(POLICIES) as (keyof typeof POLICIES)[]).map((routing) => {
      const beginMs = performance.now();
      const worker = {
        ...{ policy: 'GUARANTEED_NO_EVICT' as const, numBlocks, tokensPerBlock: 32, maxNumRequests: 64 },
        microBatch: {
          ...{ maxBatchSize: 64, maxNumTokens: 2048 },
          chunking: { unit: 32, policy: 'EQUAL_PROGRESS' as const },
        },
      };
      const result = new ClusterSimulation({
        workers,
        worker,
        pace: PACE,
        routing,
        eventDelayMs: 5,
        random: seededRandom(SEED + 1),
      }).run(arrivals);
      const tookMs = performance.now() - beginMs;
      progress(`${routing}: ${result.iterations} iterations simulated in ${(tookMs / 1000).toFixed(1)} s`);
      return row(POLICIES[routing], result, promptTokens);
    });
    const isReal = flags.model !== '' && flags.model !== 'none';
    const real = isReal
      ? realSentence(await measureRealWorkers(flags.model, countOf('rounds', flags.rounds), progress))
      : 'not measured';
    report({
      section: 'routing',
      conditions: `simulated: ${workers} workers, ${arrivals.length} requests at ${rate} a second, ${prefixes} system prompts of ${PREFIX_TOKENS} tokens, ${TURNS} turns of ${OWN_TOKENS} tokens each, ${NEW_TOKENS} new tokens, caches of ${numBlocks} blocks of 32 tokens; real (${REAL_CONDITIONS}): ${real}`,
      lines: markdownTable(
        [
          'requests are sent',
          'prompt tokens found in a cache',
          'million prompt tokens computed',
          'first token p50, s',
          'p90',
          'p99',
          'last token p50',
        ],
        rows,
      ).split('\n'),
    });
  },
});
