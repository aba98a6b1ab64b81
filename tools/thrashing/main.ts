/**
 * Behaviour of MAX_UTILIZATION when more is asked of it than the pool can hold, without and with a horizon
 * for starts, and GUARANTEED_NO_EVICT for comparison. Counts iterations and tokens, no time: the same on
 * every machine.
 *
 *     npx tsx tools/thrashing/main.ts            prints the tables
 *     npx tsx tools/thrashing/main.ts --write    writes them into docs/lab/batching.md
 */
import { writeSection } from '../document-section.js';
import { type Measured, measureLoop, measureSimulation, type Pool, type Setting } from './measure.js';
import { overloadTrace } from './overload-trace.js';

const POOL: Pool = { numBlocks: 64, tokensPerBlock: 16, maxNumRequests: 32, maxNumTokens: 512 };
const TRACE = { requests: 200, rate: 0.4, promptLength: [16, 96] as const, newTokens: 64, seed: 1 };
/** Most tokens of an answer in the second table; answers end earlier. */
const LIMIT = 384;
const END_ID = 0;

const SETTINGS: readonly Setting[] = [
  { policy: 'MAX_UTILIZATION' },
  ...[16, 32, 64, 128].map((startHorizon) => ({ policy: 'MAX_UTILIZATION' as const, startHorizon })),
  { policy: 'GUARANTEED_NO_EVICT' },
];

function table(measure: (setting: Setting) => Measured): string {
  const rows = SETTINGS.map((setting) => {
    const { pauses, recomputedTokens, computedTokens, iterations, firstToken, lastToken } = measure(setting);
    const counts = [
      pauses,
      recomputedTokens,
      computedTokens,
      iterations,
      firstToken.toFixed(0),
      lastToken.toFixed(0),
    ];
    return `| ${[setting.policy, setting.startHorizon ?? '', ...counts].join(' | ')} |`;
  });
  return [
    '| policy | startHorizon | pauses | tokens computed again | tokens computed in all | iterations to the end | to the first token | to the last |',
    '|---|---:|---:|---:|---:|---:|---:|---:|',
    ...rows,
  ].join('\n');
}

const trace = overloadTrace(TRACE);
const limited = trace.map((request) => ({ ...request, maxNewTokens: LIMIT }));
const { numBlocks, tokensPerBlock, maxNumRequests, maxNumTokens } = POOL;
const [shortest, longest] = TRACE.promptLength;
const lines = [
  `${TRACE.requests} requests, ${TRACE.rate} an iteration; prompts of ${shortest} to ${longest} tokens; ${numBlocks} blocks of ${tokensPerBlock} tokens; at most`,
  `${maxNumRequests} requests and ${maxNumTokens} tokens an iteration; chunked context, no reuse. The last two columns are means over the`,
  'requests, in iterations from their arrival.',
  '',
  `Answers of ${TRACE.newTokens} tokens on average, each as long as it may be (\`simulate\`):`,
  '',
  table((setting) => measureSimulation(trace, POOL, setting)),
  '',
  `Answers that may have ${LIMIT} tokens and end by themselves, after 100 on average (the loop, an executor without a model):`,
  '',
  table((setting) => measureLoop(limited, POOL, setting, END_ID)),
];
const report = lines.join('\n');

if (process.argv.includes('--write')) writeSection('docs/lab/batching.md', 'thrashing', report);
else console.log(report);
