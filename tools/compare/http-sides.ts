import { type ChildProcess, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadHttp } from './http-load.js';
import type { ServingPeer } from './peer.js';
import { CLI, spawnSkein, withServer } from './run-server.js';
import type { Side, Values } from './side.js';
import { skeinDigest } from './skein.js';

/** A number of clients at once, each with a number of requests one after the other. */
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

/** Most tokens of a prompt and its answer: a word is at most two. */
const sequenceTokens = ({ promptWords, generate }: ServerLoad): number =>
  Math.ceil((2 * promptWords + generate) / 1024) * 1024;

/** The server of a peer under the name `engine`, restarted for each number of clients with as many slots. */
export function peerServerSide(
  engine: string,
  peer: ServingPeer,
  model: string,
  format: string,
  load: ServerLoad,
): Side<ServerShape> {
  return {
    name: `${engine} ${format}`,
    engine,
    format,
    bytes: statSync(peer.weightsFile(model, format)).size,
    version: peer.version(),
    measure: (shape) => {
      const start = (port: number) =>
        peer.serve(model, format, port, load.threads, shape.clients, sequenceTokens(load));
      return measureServer(start, shape, load);
    },
  };
}

/** `skein serve`, restarted for each number of clients with as many sequences. Its engine is built before. */
export function skeinServerSide(model: string, format: string, load: ServerLoad): Side<ServerShape> {
  return {
    name: `skein ${format}`,
    engine: 'skein',
    format,
    bytes: engineBytes(model, format),
    version: skeinDigest(),
    measure: (shape) => {
      const start = (port: number) => {
        const args = ['--model', model, '--weights', format, '--port', `${port}`];
        args.push('--threads', `${load.threads}`, '--max-active-requests', `${shape.clients}`);
        args.push('--max-context-tokens', `${sequenceTokens(load)}`);
        return spawnSkein(args);
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

/** Starts a server, warms it up with a request, and loads it. @throws where the first request fails: that leads to no rates */
function measureServer(
  start: (port: number) => ChildProcess,
  { clients, requests }: ServerShape,
  { promptWords, generate, keepAlive }: ServerLoad,
): Promise<Values> {
  return withServer(start, async ({ url, model }) => {
    const load = { url, model, promptWords, generate, keepAlive };
    const first = await loadHttp({ ...load, clients: 1, requests: 1, seed: 1 });
    if (first.failed > 0)
      throw new Error(`${url} does not answer the first request: there is nothing to compare.`);
    return { ...(await loadHttp({ ...load, clients, requests })) };
  });
}
