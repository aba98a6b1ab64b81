import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countOf } from '../../compare/flags.js';
import { addressOf } from '../../listening-server.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median, percentile } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { MODEL_FLAG, modelOf, positiveOf, roundsFlag, secondsFlag } from '../flags.js';

const FLAGS = {
  ...MODEL_FLAG,
  encoder: { argument: 'DIR', default: '', help: 'an embedding model' },
  words: { argument: 'N', default: '96', help: 'words of a text (default 96)' },
  ...secondsFlag(5),
  ...roundsFlag(3),
} as const;
const TEXTS_OF_REQUEST = 64;
const TOKENS = 150;
const WORDS = 'the cat sat on a mat while it rained in the town and no one saw what the birds did'.split(' ');

async function post(url: string, path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

/** Milliseconds between the tokens of a streamed answer. */
async function gapsOf(url: string, tokens: number): Promise<number[]> {
  const asked = { model: 'chat', prompt: 'Once upon a time', max_tokens: tokens, ignore_eos: true };
  const { body } = await post(url, '/v1/completions', { ...asked, stream: true, temperature: 0 });
  const times: number[] = [];
  const decoder = new TextDecoder();
  for await (const piece of body!) {
    const events = decoder.decode(piece, { stream: true }).split('data: {').length - 1;
    for (let i = 0; i < events; i++) times.push(performance.now());
  }
  return times.slice(1).map((time, i) => time - times[i]!);
}

/** Texts a second, embedded one request after the other until the signal. */
async function textRate(url: string, words: number, signal: AbortSignal): Promise<number> {
  let texts = 0;
  const startMs = performance.now();
  while (!signal.aborted) {
    const input = Array.from({ length: TEXTS_OF_REQUEST }, (_, i) =>
      Array.from({ length: words }, (_, k) => WORDS[(texts + i * 7 + k * 3) % WORDS.length]).join(' '),
    );
    await (await post(url, '/v1/embeddings', { model: 'vectors', input, encoding_format: 'base64' })).json();
    texts += TEXTS_OF_REQUEST;
  }
  return (1000 * texts) / (performance.now() - startMs);
}

interface Round {
  gaps: { alone: number[]; together: number[] };
  rates: { alone: number; together: number };
}

async function roundOf(url: string, words: number, seconds: number): Promise<Round> {
  const gapsAlone = await gapsOf(url, TOKENS);
  const rateAlone = await textRate(url, words, AbortSignal.timeout(1000 * seconds));
  const stop = new AbortController();
  const rate = textRate(url, words, stop.signal);
  const gapsTogether = await gapsOf(url, TOKENS);
  stop.abort();
  return {
    gaps: { alone: gapsAlone, together: gapsTogether },
    rates: { alone: rateAlone, together: await rate },
  };
}

function tableOf(rounds: readonly Round[]): string {
  const rows = (['alone', 'together'] as const).map((how) => {
    const gaps = rounds.flatMap((round) => round.gaps[how]);
    const of = (value: number) => value.toFixed(1);
    const rate = of(median(rounds.map((round) => round.rates[how])));
    return [how, of(median(gaps)), of(percentile(gaps, 0.95)), of(Math.max(...gaps)), rate];
  });
  return markdownTable(['', 'tokens, ms apart: median', '95 %', 'longest', 'texts/s'], rows);
}

/** A server of a model that generates and one that embeds: what each of them does alone, and while the other is busy. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['vectors-compared'],
  async run({ encoder, words, seconds, rounds, ...flags }, { progress, report }) {
    if (encoder === '') throw new Error('--encoder: expected a folder with an embedding model, found none.');
    const folder = mkdtempSync(join(tmpdir(), 'skein-vectors-compared-'));
    const cli = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));
    const models = ['--model', `chat=${modelOf(flags)}`, '--model', `vectors=${encoder}`];
    const child = spawn(process.execPath, [cli, 'serve', ...models, '--port', '0', '--cache-dir', folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    try {
      const url = await addressOf(child);
      const numWords = countOf('words', words);
      await gapsOf(url, 20);
      await textRate(url, numWords, AbortSignal.timeout(1000));
      const found: Round[] = [];
      for (let round = 0; round < countOf('rounds', rounds); round++) {
        progress(`round ${round + 1}`);
        found.push(await roundOf(url, numWords, positiveOf('seconds', seconds)));
      }
      const conditions = `answers of ${TOKENS} tokens, ${TEXTS_OF_REQUEST} texts of ${numWords} words a request, ${found.length} rounds`;
      report({ section: 'vectors-compared', conditions, lines: [tableOf(found)] });
    } finally {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
