// What the HTTP side costs: the real server, tokenizer and template included, over an executor that gives tokens at a
// steady rate and computes nothing (steady-executor.mjs), read by bare sockets in this process.
//
//   npx tsx tools/http-bench/main.ts MODEL [--streams 128] [--rate 3000] [--seconds 20] [--write] [--profile FILE] [--routes TEXT] [--neighbours TEXT]
//
// 1. Processor time of the server's main thread, and of all its threads but the engine's, for `streams` streams at
//    `rate` tokens a second, as shares of one core.
// 2. What those streams notice of a neighbour: the longest delay of the server's event loop and the longest silence of a
//    stream, with the time to the first byte of a short request that comes at the same moment.
//
// `npm run build` comes first. --write puts the tables into BENCHMARKS.md; --profile writes a profile of the main
// thread while the first of the routes runs (for Chrome's DevTools) instead of measuring; --routes
// and --neighbours pick those whose names hold a text.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeMachine, machineLine, sectionOf } from '../../base/machine.js';
import { writeSection } from '../document-section.js';
import { NEIGHBOURS } from './neighbours.js';
import { RawStream } from './raw-stream.js';
import { type BenchServer, startBenchServer } from './server-process.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '128' },
    rate: { type: 'string', default: '3000' },
    seconds: { type: 'string', default: '20' },
    routes: { type: 'string', default: '' },
    neighbours: { type: 'string', default: '' },
    profile: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const [model] = positionals;
if (model === undefined) throw new Error('Which model? npx tsx tools/http-bench/main.ts MODEL');
const numStreams = Number(values.streams);
const rate = Number(values.rate);
const seconds = Number(values.seconds);
/** Answers are longer than the bench runs. */
const MAX_TOKENS = 100_000;

const server = await startBenchServer({ model, rate, maxSeqLen: 2 ** 19, maxNumSequences: numStreams + 8 });
const lines: string[] = [];
if (values.profile !== undefined) {
  const file = values.profile;
  const route = Object.entries(ROUTES()).find(([name]) => name.includes(values.routes))![1];
  await withStreams(route, () => server.profile(file, () => sleep(1000 * seconds)));
  await server.stop();
  process.exit();
}
try {
  lines.push(
    '| streams of | tokens/s | main thread, % of a core | other threads | µs a token | bytes a token |',
  );
  lines.push('|---|---|---|---|---|---|');
  for (const [name, route] of Object.entries(ROUTES())) {
    if (name.includes(values.routes)) lines.push(await cost(name, route));
  }
  lines.push(
    '',
    '| a neighbour sends | answer | event loop, longest ms | silence of a stream, longest ms | first byte of a short request, ms |',
  );
  lines.push('|---|---|---|---|---|');
  const neighbours = Object.entries(NEIGHBOURS).filter(([name]) => name.includes(values.neighbours));
  if (neighbours.length > 0) {
    await withStreams(ROUTES().chat!, async (streams) => {
      for (const [name, send] of neighbours) lines.push(await disturbance(name, send, streams));
    });
  }
} finally {
  await server.stop();
}
const machine = describeMachine();
const text = `${machineLine(machine)}; ${numStreams} streams, ${seconds} s each.\n\n${lines.join('\n')}`;
console.log(text);
if (values.write) writeSection('BENCHMARKS.md', sectionOf('http-side', machine), text);

interface Route {
  path: string;
  body: object;
}

function ROUTES(): Record<string, Route> {
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

async function withStreams(route: Route, work: (streams: RawStream[]) => Promise<void>): Promise<void> {
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

async function cost(name: string, route: Route): Promise<string> {
  let line = '';
  await withStreams(route, async (streams) => {
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
    line =
      `| ${name} | ${perSecond.toFixed(0)} | ${share(of('main'))} | ${share(of('helpers'))} | ` +
      `${((1000 * of('main')) / of('frames')).toFixed(1)} | ${(of('bytes') / of('frames')).toFixed(0)} |`;
    console.log(line);
  });
  return line;
}

async function disturbance(
  name: string,
  send: (server: BenchServer) => Promise<string>,
  streams: readonly RawStream[],
): Promise<string> {
  for (const stream of streams) stream.resetGap();
  let answer = '';
  let firstByteMs = 0;
  const { longestMs } = await server.delayDuring(async () => {
    const sent = send(server);
    await sleep(5);
    const { path, body } = ROUTES().chat!;
    const probe = new RawStream(server.url, path, { ...body, max_tokens: 1 });
    answer = await sent;
    while (probe.firstFrameMs === null) await sleep(5);
    firstByteMs = probe.firstFrameMs;
    probe.close();
    await sleep(200);
  });
  const gap = Math.max(...streams.map(({ longestGapMs }) => longestGapMs));
  const line = `| ${name} | ${answer} | ${longestMs.toFixed(0)} | ${gap.toFixed(0)} | ${firstByteMs.toFixed(0)} |`;
  console.log(line);
  return line;
}
