import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { cpuMs } from '../../support/cpu-ms.js';
import { markdownTable } from '../../support/markdown-table.js';
import { findNatsServer, NatsProcess } from '../../support/queue/nats-process.js';
import { until } from '../../support/queue/queue-lab.js';
import { seededRandom } from '../../support/random.js';
import { median, percentile } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { MODEL_FLAG, modelOf, roundsFlag } from '../flags.js';
import { type FrontProcess, startFront, startWorker } from '../queue/front-process.js';

const FLAGS = {
  ...MODEL_FLAG,
  workers: { argument: 'N', default: '3', help: 'workers, of a thread each (default 3)' },
  clients: { argument: 'N', default: '3', help: 'requests at once (default 3)' },
  requests: { argument: 'N', default: '96', help: 'requests of a round (default 96)' },
  prefixes: { argument: 'N', default: '24', help: 'system prompts that requests begin with (default 24)' },
  cache: {
    argument: 'TOKENS',
    default: '4096',
    help: 'KV cache of each worker: all beginnings fit into all of them together, and not into each (default 4096)',
  },
  ...roundsFlag(5),
} as const;
type Flags = FlagValues<typeof FLAGS>;

const PREFIX_TOKENS = 384;
const OWN_TOKENS = 32;
const NEW_TOKENS = 8;
const TURNS = 2;
const CONTEXT_TOKENS = '1024';
const SEED = 28;
const ROUTINGS = ['any', 'cache'] as const;
type Routing = (typeof ROUTINGS)[number];

/** One trace over one gateway. */
interface Round {
  /** Share of the prompt tokens that a worker's cache had. */
  found: number;
  firstTokenMs: number[];
  processorSeconds: number;
}

interface Asked {
  prompt: number[];
  salt: string;
}

interface Chunk {
  choices: readonly unknown[];
  usage?: { prompt_tokens_details?: { cached_tokens?: number } } | null;
}

/** Streams a completion. */
async function stream(
  { url }: FrontProcess,
  { prompt, salt }: Asked,
): Promise<{ firstTokenMs: number; cachedTokens: number }> {
  const begin = performance.now();
  const answer = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'm', prompt, max_tokens: NEW_TOKENS, temperature: 0, ignore_eos: true, cache_salt: salt },
      ...{ stream: true, stream_options: { include_usage: true } },
    }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  let firstTokenMs = Number.NaN;
  let text = '';
  for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
    if (Number.isNaN(firstTokenMs)) firstTokenMs = performance.now() - begin;
    text += Buffer.from(bytes).toString();
  }
  const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!) as Chunk);
  const usage = chunks.find((chunk) => chunk.usage != null)?.usage;
  return { firstTokenMs, cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0 };
}

/** Prompts of the trace, with tokens that every model has. */
function promptsOf(flags: Flags): number[][] {
  const requests = countOf('requests', flags.requests);
  const trace = sharedPrefixTrace({
    ...{ requests, rate: 8, prefixes: countOf('prefixes', flags.prefixes), prefixTokens: PREFIX_TOKENS },
    ...{ ownTokens: OWN_TOKENS, maxNewTokens: NEW_TOKENS, turns: TURNS, random: seededRandom(SEED) },
  });
  const prompts: number[][] = [];
  for (const { tokens } of trace) {
    if (prompts.length === requests) break;
    prompts.push(Array.from(tokens, (token) => 100 + (token % 10_000)));
  }
  return prompts;
}

/** @param salt whose blocks no other round finds: what a round has left is of no use to the next */
async function measure(
  front: FrontProcess,
  pids: readonly number[],
  { prompts, clients, salt }: { prompts: readonly number[][]; clients: number; salt: string },
): Promise<Round> {
  const before = cpuMs([...pids]);
  const firstTokenMs: number[] = [];
  let cached = 0;
  const left = prompts.values();
  const client = async () => {
    // All clients take from one iterator.
    for (const prompt of left) {
      const seen = await stream(front, { prompt, salt });
      firstTokenMs.push(seen.firstTokenMs);
      cached += seen.cachedTokens;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const promptTokens = prompts.reduce((sum, { length }) => sum + length, 0);
  return {
    found: cached / promptTokens,
    firstTokenMs,
    processorSeconds: (cpuMs([...pids]) - before) / 1000,
  };
}

async function run(flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const program = findNatsServer();
  if (program === null) throw new Error('There is no nats-server: apt-get install nats-server.');
  const nats = await NatsProcess.start(program);
  const processes: FrontProcess[] = [];
  const rounds: Record<Routing, Round[]> = { any: [], cache: [] };
  try {
    const engine = [
      ...['--model', `m=${modelOf(flags)}`, '--threads', '1'],
      ...['--kv-cache-tokens', flags.cache, '--max-context-tokens', CONTEXT_TOKENS],
    ];
    for (let i = 0; i < countOf('workers', flags.workers); i++)
      processes.push(await startWorker(['work', '--nats', nats.url, ...engine]));
    const workerPids = processes.map(({ pid }) => pid);
    const fronts = new Map<Routing, FrontProcess>();
    for (const routing of ROUTINGS) {
      const front = await startFront(['gateway', '--nats', nats.url, '--routing', routing]);
      processes.push(front);
      fronts.set(routing, front);
      await until('the model', async () =>
        (await (await fetch(`${front.url}/v1/models`)).text()).includes('"m"'),
      );
    }
    const prompts = promptsOf(flags);
    const clients = countOf('clients', flags.clients);
    const once = (routing: Routing, salt: string, some: readonly number[][]) => {
      const front = fronts.get(routing)!;
      return measure(front, [front.pid, nats.pid, ...workerPids], { prompts: some, clients, salt });
    };
    for (const routing of ROUTINGS) await once(routing, `warm ${routing}`, prompts.slice(0, 2 * clients));
    await takeRounds(ROUTINGS, countOf('rounds', flags.rounds), async (routing, round) => {
      const one = await once(routing, `${routing} ${round}`, prompts);
      rounds[routing].push(one);
      progress(
        `round ${round + 1} of ${flags.rounds}, ${routing}: ${(100 * one.found).toFixed(1)} % found, first token ${median(one.firstTokenMs).toFixed(0)} ms`,
      );
    });
  } finally {
    await Promise.all(processes.map((one) => one.stop()));
    await nats.close();
  }
  report(reportOf(rounds, flags));
}

function reportOf(rounds: Record<Routing, Round[]>, flags: Flags) {
  const of = (routing: Routing, value: (round: Round) => number) => median(rounds[routing].map(value));
  const meanOf = (values: readonly number[]) => values.reduce((sum, ms) => sum + ms, 0) / values.length;
  const rows = ROUTINGS.map((routing) => [
    `\`--routing ${routing}\``,
    `${(100 * of(routing, ({ found }) => found)).toFixed(1)} %`,
    ...[0.5, 0.9].map((share) =>
      of(routing, ({ firstTokenMs }) => percentile(firstTokenMs, share)).toFixed(0),
    ),
    of(routing, ({ firstTokenMs }) => meanOf(firstTokenMs)).toFixed(0),
    of(routing, ({ processorSeconds }) => processorSeconds).toFixed(1),
  ]);
  // What other work of the machine does to one round, it does to both of its pair.
  const ratio = (value: (round: Round) => number) =>
    median(rounds.any.map((round, i) => value(round) / value(rounds.cache[i]!)));
  return {
    section: 'queue-routing',
    conditions: `${flags.workers} workers of a thread with caches of ${flags.cache} tokens, ${flags.requests} requests, ${flags.clients} at once, ${flags.prefixes} system prompts of ${PREFIX_TOKENS} tokens, ${TURNS} turns of ${OWN_TOKENS}, ${NEW_TOKENS} new tokens, medians of ${flags.rounds} rounds in turns`,
    lines: [
      markdownTable(
        [
          '',
          'prompt tokens found in a cache',
          'first token p50, ms',
          'p90',
          'mean',
          'processor seconds, all processes',
        ],
        rows,
      ),
      '',
      `With \`any\` the first token takes ${ratio(({ firstTokenMs }) => meanOf(firstTokenMs)).toFixed(2)} times as long on average, and a round ${ratio(({ processorSeconds }) => processorSeconds).toFixed(2)} times the processor time.`,
    ],
  };
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['queue-routing'],
  run,
});
