/**
 * `skein serve` and llama-server side by side: streaming chat clients in a closed loop, taking turns. See --help.
 *
 *     npm run bench:http -- --model DIR_OR_GGUF
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type HttpRates, loadHttp } from './http-load.js';
import { ggufOf, LlamaCpp } from './llama-cpp.js';
import { describeMachine, median } from './report.js';

const HELP = `Streams chat from skein serve and llama-server on this machine and prints a Markdown table.

  --model PATH        folder with one GGUF, or a GGUF (default: SKEIN_TEST_MODEL)
  --peers DIR         where llama.cpp lies or is fetched and built (default: SKEIN_PEERS, ~/.cache/skein-peers)
  --weights LIST      Skein's formats (default bf16)
  --types LIST        llama.cpp's weight types (default Q8_0,Q4_0)
  --clients LIST      clients at once (default 1,8,32,64,128)
  --requests N        requests of each client (default 2)
  --words N           words of a prompt (default 100)
  --generate N        tokens of an answer (default 64)
  --rounds N          alternations; medians are reported (default 3)
  --threads N         threads of either server (default: all)
  --output FILE       also write everything measured as JSON`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    model: { type: 'string', default: process.env.SKEIN_TEST_MODEL ?? '' },
    peers: { type: 'string', default: process.env.SKEIN_PEERS ?? join(homedir(), '.cache', 'skein-peers') },
    weights: { type: 'string', default: 'bf16' },
    types: { type: 'string', default: 'Q8_0,Q4_0' },
    clients: { type: 'string', default: '1,8,32,64,128' },
    requests: { type: 'string', default: '2' },
    words: { type: 'string', default: '100' },
    generate: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '3' },
    threads: { type: 'string', default: String(availableParallelism()) },
    output: { type: 'string' },
  },
});

interface Side {
  name: string;
  start: (port: number) => ChildProcess;
  /** One list per round, an entry per number of clients. */
  rounds: HttpRates[][];
}

const clients = flags.clients.split(',').map(Number);

async function main(): Promise<void> {
  if (flags.help) {
    console.log(HELP);
    return;
  }
  if (flags.model === '') throw new Error('Which model? Give --model PATH or set SKEIN_TEST_MODEL.');
  const model = ggufOf(flags.model);
  const llama = new LlamaCpp(flags.peers);
  const sides: Side[] = [
    ...flags.types.split(',').map((type) => llamaServer(llama, model, type)),
    ...flags.weights.split(',').map((weights) => skeinServer(flags.model, weights)),
  ];
  for (let round = 1; round <= Number(flags.rounds); round++) {
    for (const side of sides) await runRound(side, round);
  }
  report(llama, sides);
}

function skeinServer(model: string, weights: string): Side {
  const cli = fileURLToPath(new URL('../../dist/bin/skein.js', import.meta.url));
  const start = (port: number) => {
    const most = `${Math.max(...clients)}`;
    const args = [cli, 'serve', '--model', model, '--weights', weights, '--port', `${port}`];
    args.push('--threads', flags.threads, '--max-num-sequences', most, '--max-seq-len', '1024');
    return spawn(process.execPath, args, { stdio: 'ignore' });
  };
  return { name: `skein ${weights}`, start, rounds: [] };
}

function llamaServer(llama: LlamaCpp, model: string, type: string): Side {
  const start = (port: number) => llama.serve(model, type, port, Number(flags.threads), Math.max(...clients));
  return { name: `llama-server ${type}`, start, rounds: [] };
}

async function runRound(side: Side, round: number): Promise<void> {
  const port = await freePort();
  const server = side.start(port);
  const url = `http://127.0.0.1:${port}`;
  try {
    const model = await readyModel(url, server);
    const { requests, words, generate } = flags;
    const load = { url, model, promptWords: Number(words), generate: Number(generate) };
    await loadHttp({ ...load, clients: 1, requests: 1 });
    const rates: HttpRates[] = [];
    for (const count of clients) {
      rates.push(await loadHttp({ ...load, clients: count, requests: Number(requests) }));
      console.error(`round ${round}  ${side.name}  ${JSON.stringify(rates.at(-1))}`);
    }
    side.rounds.push(rates);
  } finally {
    const exited = new Promise((resolve) => server.once('exit', resolve));
    if (server.exitCode === null) server.kill();
    await exited;
  }
}

/** Waits for /health and returns the name of the model that is served. */
async function readyModel(url: string, server: ChildProcess): Promise<string> {
  for (;;) {
    if (server.exitCode !== null)
      throw new Error(`The server for ${url} ended with code ${server.exitCode}.`);
    const health = await fetch(`${url}/health`).catch(() => null);
    if (health?.ok) break;
    await wait(100);
  }
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return data[0]!.id;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

const SHOWN = [
  ['tokens/s', 'tokensPerSecond'],
  ['first token p50, ms', 'firstTokenP50'],
  ['first token p99, ms', 'firstTokenP99'],
  ['between tokens p50, ms', 'interTokenP50'],
  ['between tokens p99, ms', 'interTokenP99'],
  ['failed requests', 'failed'],
] as const;

function report(llama: LlamaCpp, sides: Side[]): void {
  const machine = describeMachine();
  console.log(
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.features.join(' ')}; ` +
      `${flags.threads} threads each; llama.cpp ${llama.version()}; medians of ${flags.rounds} alternations; prompts ` +
      `of ${flags.words} words, ${flags.generate} tokens an answer, ${flags.requests} answers for each client.\n`,
  );
  const titles = clients.map((count) => `${count} clients`);
  console.log(`| server | | ${titles.join(' | ')} |\n| --- | --- |${titles.map(() => ' ---: |').join('')}`);
  for (const side of sides) {
    for (const [label, key] of SHOWN) {
      const cells = clients.map((_, i) => median(side.rounds.map((round) => round[i]![key])).toFixed(0));
      console.log(`| ${side.name} | ${label} | ${cells.join(' | ')} |`);
    }
  }
  if (!flags.output) return;
  mkdirSync(dirname(flags.output), { recursive: true });
  const measured = sides.map(({ name, rounds }) => ({ name, rounds }));
  writeFileSync(
    flags.output,
    `${JSON.stringify({ machine, flags, llama: llama.version(), measured }, null, 1)}\n`,
  );
}

await main();
