import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadHttp } from './http-load.js';
import type { LlamaCpp } from './llama-cpp.js';
import type { Side, Values } from './side.js';
import { skeinDigest } from './skein.js';

/** A number of clients at once, each with so many requests one after the other. */
export interface ServerShape {
  clients: number;
  requests: number;
}

/** The part of the load that is the same for all columns. */
export interface ServerLoad {
  threads: number;
  promptWords: number;
  generate: number;
  keepAlive: boolean;
}

/** Most tokens of a prompt and its answer. */
const SEQUENCE_TOKENS = 1024;
const CLI = fileURLToPath(new URL('../../dist/bin/skein.js', import.meta.url));

/** llama-server, started anew for each number of clients with as many slots. */
export function llamaServerSide(
  llama: LlamaCpp,
  model: string,
  format: string,
  load: ServerLoad,
): Side<ServerShape> {
  return {
    name: `llama-server ${format}`,
    engine: 'llama-server',
    format,
    bytes: statSync(llama.weightsFile(model, format)).size,
    version: llama.version(),
    measure: (shape) => {
      const start = (port: number) =>
        llama.serve(model, format, port, load.threads, shape.clients, SEQUENCE_TOKENS);
      return measureServer(start, shape, load);
    },
  };
}

/** `skein serve`, started anew for each number of clients with as many sequences. Its engine is built before. */
export function skeinServerSide(model: string, format: string, load: ServerLoad): Side<ServerShape> {
  return {
    name: `skein ${format}`,
    engine: 'skein',
    format,
    bytes: engineBytes(model, format),
    version: skeinDigest(),
    measure: (shape) => {
      const start = (port: number) => {
        const args = [CLI, 'serve', '--model', model, '--weights', format, '--port', `${port}`];
        args.push('--threads', `${load.threads}`, '--max-active-requests', `${shape.clients}`);
        args.push('--max-context-tokens', `${SEQUENCE_TOKENS}`);
        return spawn(process.execPath, args, { stdio: 'ignore' });
      };
      return measureServer(start, shape, load);
    },
  };
}

function engineBytes(model: string, format: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'skein-http-'));
  try {
    const engine = join(folder, 'engine');
    execFileSync(process.execPath, [CLI, 'build', model, '-o', engine, '--weights', format], {
      stdio: 'ignore',
    });
    return statSync(join(engine, 'weights.bin')).size;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a server, waits until it answers, warms it up with a request, and loads it. */
async function measureServer(
  start: (port: number) => ChildProcess,
  { clients, requests }: ServerShape,
  { promptWords, generate, keepAlive }: ServerLoad,
): Promise<Values> {
  const port = await freePort();
  const server = start(port);
  const url = `http://127.0.0.1:${port}`;
  try {
    const model = await readyModel(url, server);
    const load = { url, model, promptWords, generate, keepAlive };
    await loadHttp({ ...load, clients: 1, requests: 1, seed: 1 });
    return { ...(await loadHttp({ ...load, clients, requests })) };
  } finally {
    const exited = new Promise((resolve) => server.once('exit', resolve));
    if (server.exitCode === null && server.signalCode === null) {
      server.kill();
      await exited;
    }
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
