import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeMachine } from '../../../base/machine.js';
import { countOf } from '../../compare/flags.js';
import { addressOf } from '../../listening-server.js';
import { sectionOf } from '../../support/machine-words.js';
import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { percentile } from '../../support/statistics.js';
import { defineBench, forEachKind } from '../bench.js';
import { MODEL_FLAG, modelOf, positiveOf, secondsFlag } from '../flags.js';
import { RawStream } from '../http/raw-stream.js';
import { writeRandomModel } from './random-model.js';

const FLAGS = {
  ...MODEL_FLAG,
  tokens: { argument: 'N', default: '100000', help: 'tokens of the long prompt (default 100000)' },
  layers: { argument: 'N', default: '1', help: 'layers of the model (default 1)' },
  ...secondsFlag(10),
  mode: { argument: 'TEXT', default: '', help: 'orders of chunks whose names hold this text' },
  rows: { argument: 'FILE', default: '', help: 'where rows are kept between runs of one mode each' },
} as const;
const STREAMS = 4;
const SHORT_TOKENS = 32;
/** Answers are longer than the bench runs; all of them fit into the cache together with the long prompt. */
const STREAM_TOKENS = 20_000;
const HEAD = [
  'chunks',
  'next to',
  'short prompts',
  'first byte, ms: median',
  '95 %',
  'slowest',
  'tokens of 4 streams, ms apart: mean',
  'longest',
  'long prompt took, s',
];

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

interface Bed {
  /** A temporary folder, with the model. */
  folder: string;
  longTokens: number;
  seconds: number;
  /** @param longMs null where no long prompt was computed */
  addRow(name: string, beside: string, seen: Seen, longMs: number | null): void;
}

/**
 * Effect on users of a neighbour's prompt of 100,000 tokens: the real server with the native executor, asked from outside.
 *
 * The model has SmolLM2-135M's shape with `layers` layers, random weights and a context of 131,072 tokens;
 * --model names the folder that its tokenizer comes from. Four answers are streamed and short prompts are
 * sent one after the other, first without another prompt, then while the long one is computed: once with
 * chunks as they are shared by default, once in the order in which they come. Those in that order are watched
 * for `seconds` from the beginning of the long prompt, and again during a prompt of which nine tenths are
 * found in the cache.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: forEachKind('long-prompt'),
  async run(flags, { progress, report }) {
    const folder = mkdtempSync(join(tmpdir(), 'skein-long-prompt-'));
    const rows: string[][] = keptRows(flags.rows);
    const addRow: Bed['addRow'] = (name, beside, seen, longMs) => {
      rows.push(rowOf(name, beside, seen, longMs));
      progress(tableRow(rows.at(-1)!));
      if (flags.rows !== '') writeFileSync(flags.rows, JSON.stringify(rows));
    };
    const longTokens = countOf('tokens', flags.tokens);
    const layers = countOf('layers', flags.layers);
    try {
      writeRandomModel(join(folder, 'model'), modelOf(flags), layers);
      const bed: Bed = { folder, longTokens, seconds: positiveOf('seconds', flags.seconds), addRow };
      for (const [name, options] of Object.entries(MODES))
        if (name.includes(flags.mode)) await measure(bed, name, options);
    } finally {
      rmSync(folder, { recursive: true });
    }
    report({
      section: sectionOf('long-prompt', describeMachine()),
      conditions: `${layers} layers of SmolLM2-135M's shape, a prompt of ${longTokens} tokens`,
      lines: [markdownTable(HEAD, rows, 2)],
    });
  },
});

/** The rows of earlier runs. */
function keptRows(file: string): string[][] {
  return file !== '' && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as string[][]) : [];
}

function rowOf(name: string, beside: string, seen: Seen, longMs: number | null): string[] {
  const { probes, meanGapMs, longestGapMs } = seen;
  const took = longMs === null ? '-' : (longMs / 1000).toFixed(0);
  const firstBytes = [0.5, 0.95, 1].map((share) => percentile(probes, share));
  const ms = [...firstBytes, meanGapMs, longestGapMs].map((value) => value.toFixed(0));
  return [name, beside, String(probes.length), ...ms, took];
}

/** Measures one order of chunks, row by row. */
async function measure(
  { folder, longTokens, seconds, addRow }: Bed,
  name: string,
  flags: readonly string[],
): Promise<void> {
  const { url, stop } = await startServer(folder, flags);
  try {
    const streams = Array.from({ length: STREAMS }, () => stream(url, tokens(SHORT_TOKENS), STREAM_TOKENS));
    for (const one of streams) await firstFrame(one);
    await watch(url, streams, 3);
    addRow(name, 'nothing', await watch(url, streams, seconds / 2), null);
    // The first part is in the cache when the whole prompt comes, whose computation begins where the first part ends.
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

/** Short prompts one after the other for a number of seconds, or until it is over; at least three. */
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

async function startServer(
  folder: string,
  flags: readonly string[],
): Promise<{ url: string; stop(): Promise<void> }> {
  const cli = new URL('../../../dist/bin/skein.js', import.meta.url).pathname;
  const common = [
    '--model',
    join(folder, 'model'),
    '--port=0',
    '--kv-cache-tokens=262144',
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
