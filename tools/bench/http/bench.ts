import { setTimeout as sleep } from 'node:timers/promises';
import { describeMachine } from '../../../base/machine.js';
import { countOf, type FlagValues } from '../../compare/flags.js';
import { sectionOf } from '../../support/machine-words.js';
import { type Cell, markdownTable, tableRow } from '../../support/markdown-table.js';
import { type BenchOutput, defineBench, forEachKind } from '../bench.js';
import { MODEL_FLAG, modelOf, positiveOf, secondsFlag } from '../flags.js';
import { NEIGHBOURS } from './neighbours.js';
import { RawStream } from './raw-stream.js';
import { type BenchServer, startBenchServer } from './server-process.js';

const FLAGS = {
  ...MODEL_FLAG,
  streams: { argument: 'N', default: '128', help: 'streams at once (default 128)' },
  rate: { argument: 'N', default: '3000', help: 'tokens a second over all streams (default 3000)' },
  ...secondsFlag(20),
  routes: { argument: 'TEXT', default: '', help: 'routes whose names hold this text' },
  neighbours: { argument: 'TEXT', default: '', help: 'neighbours whose names hold this text' },
  profile: {
    argument: 'FILE',
    default: '',
    help: "write a profile of the main thread during the first of the routes (for Chrome's DevTools) instead of measuring",
  },
} as const;
type Flags = FlagValues<typeof FLAGS>;

/** Answers are longer than the bench runs. */
const MAX_TOKENS = 100_000;
const ROUTES_HEAD = [
  'streams of',
  'tokens/s',
  'main thread, % of a core',
  'other threads',
  'µs a token',
  'bytes a token',
];
const NEIGHBOURS_HEAD = [
  'a neighbour sends',
  'answer',
  'event loop, longest ms',
  'silence of a stream, longest ms',
  'first byte of a short request, ms',
];

/** The server under test, and how it is loaded. */
interface Bed {
  server: BenchServer;
  numStreams: number;
  /** Length of each measurement. */
  seconds: number;
}

/**
 * Cost of the HTTP side: the real server, tokenizer and template included, over an executor that gives tokens at a steady
 * rate and computes nothing (steady-executor.mjs), read by bare sockets in this process.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: forEachKind('http-side'),
  async run(flags, output) {
    const [numStreams, rate] = [countOf('streams', flags.streams), positiveOf('rate', flags.rate)];
    const seconds = positiveOf('seconds', flags.seconds);
    const sizes = { maxSeqLen: 2 ** 19, maxNumSequences: numStreams + 8 };
    const server = await startBenchServer({ model: modelOf(flags), rate, ...sizes });
    const bed: Bed = { server, numStreams, seconds };
    try {
      if (flags.profile === '') return await measure(bed, flags, output);
      const route = Object.entries(routes()).find(([name]) => name.includes(flags.routes));
      if (route === undefined) throw new Error(`--routes: no route's name holds '${flags.routes}'.`);
      await withStreams(bed, route[1], () => server.profile(flags.profile, () => sleep(1000 * seconds)));
    } finally {
      await server.stop();
    }
  },
});

async function measure(bed: Bed, flags: Flags, { progress, report }: BenchOutput): Promise<void> {
  const costs: Cell[][] = [];
  for (const [name, route] of Object.entries(routes())) {
    if (!name.includes(flags.routes)) continue;
    costs.push(await cost(bed, name, route));
    progress(tableRow(costs.at(-1)!));
  }
  const disturbances: Cell[][] = [];
  const neighbours = Object.entries(NEIGHBOURS).filter(([name]) => name.includes(flags.neighbours));
  if (neighbours.length > 0) {
    await withStreams(bed, routes().chat!, async (streams) => {
      for (const [name, send] of neighbours) {
        disturbances.push(await disturbance(bed.server, name, send, streams));
        progress(tableRow(disturbances.at(-1)!));
      }
    });
  }
  report({
    section: sectionOf('http-side', describeMachine()),
    conditions: `${bed.numStreams} streams, ${bed.seconds} s each`,
    lines: [markdownTable(ROUTES_HEAD, costs), '', markdownTable(NEIGHBOURS_HEAD, disturbances, 2)],
  });
}

interface Route {
  path: string;
  body: object;
}

function routes(): Record<string, Route> {
  const common = { stream: true, max_tokens: MAX_TOKENS, ignore_eos: true };
  const messages = [{ role: 'user', content: 'Tell me everything.' }];
  return {
    chat: { path: '/v1/chat/completions', body: { ...common, messages } },
    completions: { path: '/v1/completions', body: { ...common, prompt: 'Once upon a time' } },
    responses: {
      path: '/v1/responses',
      body: {
        stream: true,
        max_output_tokens: MAX_TOKENS,
        ignore_eos: true,
        input: 'Tell me everything.',
        store: false,
      },
    },
    'chat with two stop strings and usage in each chunk': {
      path: '/v1/chat/completions',
      body: {
        ...common,
        messages,
        stop: ['\n\n###', 'END OF ANSWER'],
        stream_options: { include_usage: true, continuous_usage_stats: true },
      },
    },
    'chat with 2 top log-probs': {
      path: '/v1/chat/completions',
      body: { ...common, messages, logprobs: true, top_logprobs: 2 },
    },
  };
}

async function withStreams(
  { server, numStreams }: Bed,
  route: Route,
  work: (streams: RawStream[]) => Promise<void>,
): Promise<void> {
  const streams = Array.from({ length: numStreams }, () => new RawStream(server.url, route.path, route.body));
  while (streams.some(({ firstFrameMs }) => firstFrameMs === null)) await sleep(50, refuseEnded(streams));
  await sleep(2000);
  await work(streams);
  refuseEnded(streams);
  for (const stream of streams) stream.close();
  await sleep(1000);
}

/** @throws where a stream is over, or never was one: what is measured would be something else. */
function refuseEnded(streams: readonly RawStream[]): void {
  const over = streams.find(({ ended }) => ended !== null);
  if (over !== undefined) throw new Error(`A stream ended: ${over.ended!.slice(-500)}`);
}

/** Cost of one route's streams to the server's main thread, and to its other threads except the engine's. */
async function cost(bed: Bed, name: string, route: Route): Promise<Cell[]> {
  const { server, seconds } = bed;
  let row: Cell[] = [];
  await withStreams(bed, route, async (streams) => {
    const sum = (field: 'frames' | 'bytes') => streams.reduce((total, stream) => total + stream[field], 0);
    const read = () => ({
      ms: performance.now(),
      frames: sum('frames'),
      bytes: sum('bytes'),
      ...server.processorTime(),
    });
    const before = read();
    await sleep(1000 * seconds);
    const after = read();
    const of = (field: keyof typeof before) => after[field] - before[field];
    const share = (ms: number) => `${((100 * ms) / of('ms')).toFixed(1)} %`;
    const perSecond = (1000 * of('frames')) / of('ms');
    row = [
      name,
      perSecond.toFixed(0),
      share(of('main')),
      share(of('helpers')),
      ((1000 * of('main')) / of('frames')).toFixed(1),
      (of('bytes') / of('frames')).toFixed(0),
    ];
  });
  return row;
}

/**
 * Disturbance of the streams by a neighbour: the longest delay of the server's event loop and the longest silence of a stream,
 * with the time to the first byte of a short request that comes at the same moment.
 */
async function disturbance(
  server: BenchServer,
  name: string,
  send: (server: BenchServer) => Promise<string>,
  streams: readonly RawStream[],
): Promise<Cell[]> {
  for (const stream of streams) stream.resetGap();
  let answer = '';
  let firstByteMs = 0;
  const { longestMs } = await server.delayDuring(async () => {
    const sent = send(server);
    await sleep(5);
    const { path, body } = routes().chat!;
    const probe = new RawStream(server.url, path, { ...body, max_tokens: 1 });
    answer = await sent;
    while (probe.firstFrameMs === null) await sleep(5);
    firstByteMs = probe.firstFrameMs;
    probe.close();
    await sleep(200);
  });
  const gap = Math.max(...streams.map(({ longestGapMs }) => longestGapMs));
  return [name, answer, longestMs.toFixed(0), gap.toFixed(0), firstByteMs.toFixed(0)];
}
