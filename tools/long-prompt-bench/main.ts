// What users notice of a neighbour's prompt of 100,000 tokens: the real server with the native executor, asked from outside.
//
//   npm run build:ts && npx tsx tools/long-prompt-bench/main.ts [--tokens 100000] [--layers 1] [--seconds 10] [--write]
//
// The model has SmolLM2-135M's shape with `layers` layers, random weights and a context of 131,072 tokens. Four answers are
// streamed and short prompts are sent one after the other, first beside no other prompt, then while the long one is
// computed: once as chunks are shared by default, once as they come. Those that come are watched for `seconds` from
// the beginning of the long prompt, and again of one of which nine tenths are found in the cache.
// SKEIN_TEST_MODEL names the folder that the tokenizer comes from; --write puts the table into BENCHMARKS.md. --mode runs
// only those whose names hold a text, and --rows keeps rows in a file between such runs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeMachine, machineLine, sectionOf } from '../../base/machine.js';
import { writeSection } from '../document-section.js';
import { RawStream } from '../http-bench/raw-stream.js';
import { addressOf } from '../listening-server.js';
import { writeRandomModel } from './random-model.js';

const { values } = parseArgs({
  options: {
    tokens: { type: 'string', default: '100000' },
    layers: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '10' },
    mode: { type: 'string', default: '' },
    rows: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const longTokens = Number(values.tokens);
const seconds = Number(values.seconds);
const STREAMS = 4;
const SHORT_TOKENS = 32;
/** Longer than the bench runs; all of them have room in the cache beside the long prompt. */
const STREAM_TOKENS = 20_000;
const model = process.env.SKEIN_TEST_MODEL;
if (model === undefined) throw new Error('SKEIN_TEST_MODEL must name the folder of a model.');

/** Different tokens for every prompt, so that no cache helps. */
let drawn = 1;
function tokens(count: number): number[] {
  return Array.from({ length: count }, () => {
    drawn = (drawn * 48271) % 2147483647;
    return 300 + (drawn % 40_000);
  });
}

const MODES: Record<string, string[]> = {
  'SHORTEST_FIRST, 50 ms': [],
  'FIRST_COME_FIRST_SERVED, no bound': [
    '--chunking-policy=FIRST_COME_FIRST_SERVED',
    '--max-chunk-ms=1000000000',
  ],
};

const folder = mkdtempSync(join(tmpdir(), 'skein-long-prompt-'));
const kept = values.rows !== undefined && existsSync(values.rows) ? readFileSync(values.rows, 'utf8') : '';
const lines =
  kept !== ''
    ? kept.split('\n')
    : [
        '| chunks | beside | short prompts | first byte, ms: median | 95 % | slowest | tokens of 4 streams, ms apart: mean | longest | long prompt took, s |',
        '|---|---|---:|---:|---:|---:|---:|---:|---:|',
      ];
try {
  writeRandomModel(join(folder, 'model'), model, Number(values.layers));
  for (const [name, flags] of Object.entries(MODES))
    if (name.includes(values.mode)) await measure(name, flags);
} finally {
  rmSync(folder, { recursive: true });
}
const machine = describeMachine();
const text = `${machineLine(machine)}; ${values.layers} layers of SmolLM2-135M's shape, a prompt of ${longTokens} tokens.\n\n${lines.join('\n')}`;
console.log(text);
if (values.write) writeSection('BENCHMARKS.md', sectionOf('long-prompt', machine), text);

async function measure(name: string, flags: readonly string[]): Promise<void> {
  const { url, stop } = await startServer(flags);
  try {
    const streams = Array.from({ length: STREAMS }, () => stream(url, tokens(SHORT_TOKENS), STREAM_TOKENS));
    for (const one of streams) await firstFrame(one);
    await watch(url, streams, 3);
    addRow(name, 'nothing', await watch(url, streams, seconds / 2), null);
    // What was computed of the first is in the cache of the second: that begins where the first has ended.
    const prompt = tokens(longTokens);
    for (const [part, end] of [
      ['its beginning', Math.floor(0.9 * longTokens)],
      ['its end', longTokens],
    ] as const) {
      const long = stream(url, prompt.slice(0, end), 1);
      await sleep(1000);
      const seen = await watch(url, streams, seconds, () => long.firstFrameMs !== null);
      addRow(name, part, seen, await firstFrame(long));
      long.close();
      // Without a bound the only probe has waited for the whole prompt: there is nothing more to see at its end.
      if (seen.probes.length === 1) break;
    }
    for (const one of streams) one.close();
  } finally {
    await stop();
  }
}

/** @throws where there is none: a request that was refused. */
async function firstFrame(one: RawStream): Promise<number> {
  while (one.firstFrameMs === null) {
    if (one.ended !== null) throw new Error(`A stream ended: ${one.ended.slice(-500)}`);
    await sleep(2);
  }
  return one.firstFrameMs;
}

function stream(url: string, prompt: number[], maxTokens: number): RawStream {
  return new RawStream(url, '/v1/completions', {
    prompt,
    max_tokens: maxTokens,
    stream: true,
    ignore_eos: true,
  });
}

interface Seen {
  ms: number;
  probes: number[];
  meanGapMs: number;
  longestGapMs: number;
}

/** Short prompts one after the other for so many seconds, or until it is over; at least three. */
async function watch(
  url: string,
  streams: readonly RawStream[],
  forSeconds: number,
  isOver = () => false,
): Promise<Seen> {
  const startMs = performance.now();
  const frames = () => streams.reduce((sum, one) => sum + one.frames, 0);
  const before = frames();
  for (const one of streams) one.resetGap();
  const probes: number[] = [];
  while ((performance.now() - startMs < 1000 * forSeconds && !isOver()) || probes.length < 1) {
    const probe = stream(url, tokens(SHORT_TOKENS), 1);
    probes.push(await firstFrame(probe));
    probe.close();
    await sleep(37 + ((probes.length * 29) % 60));
  }
  const ms = performance.now() - startMs;
  return {
    ms,
    probes,
    meanGapMs: (STREAMS * ms) / (frames() - before),
    longestGapMs: Math.max(...streams.map(({ longestGapMs }) => longestGapMs)),
  };
}

function addRow(name: string, beside: string, seen: Seen, longMs: number | null): void {
  const { probes, meanGapMs, longestGapMs } = seen;
  const sorted = [...probes].sort((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(0);
  const took = longMs === null ? '-' : (longMs / 1000).toFixed(0);
  const line =
    `| ${name} | ${beside} | ${probes.length} | ${at(0.5)} | ${at(0.95)} | ${at(1)} | ` +
    `${meanGapMs.toFixed(0)} | ${longestGapMs.toFixed(0)} | ${took} |`;
  console.log(line);
  lines.push(line);
  if (values.rows !== undefined) writeFileSync(values.rows, lines.join('\n'));
}

async function startServer(flags: readonly string[]): Promise<{ url: string; stop(): Promise<void> }> {
  const cli = new URL('../../dist/bin/skein.js', import.meta.url).pathname;
  const common = [
    '--model',
    join(folder, 'model'),
    '--port=0',
    '--max-tokens=262144',
    '--cache-dir',
    join(folder, 'cache'),
  ];
  const child = spawn(process.execPath, [cli, 'serve', ...common, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const url = await addressOf(child);
  return {
    url,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
