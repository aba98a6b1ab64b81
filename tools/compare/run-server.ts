import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.js';

/** A server that answers GET /health. */
export interface RunningServer {
  url: string;
  /** Name of the model that it serves. */
  model: string;
  pid: number;
}

/** Milliseconds between two questions whether the server is there. */
const POLL_MS = 20;

/** Starts a server on a free port, waits until it answers, and ends it after `use`. */
export async function withServer<T>(
  start: (port: number) => ChildProcess,
  use: (server: RunningServer) => Promise<T>,
): Promise<T> {
  const port = await freePort();
  const child = start(port);
  const url = `http://127.0.0.1:${port}`;
  try {
    return await use({ url, model: await readyModel(url, child), pid: child.pid! });
  } finally {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null) {
      child.kill();
      await exited;
    }
  }
}

/** Waits for /health and returns the name of the model that is served. */
async function readyModel(url: string, server: ChildProcess): Promise<string> {
  for (;;) {
    if (server.exitCode !== null || server.signalCode !== null)
      throw new Error(`The server for ${url} ended with ${server.exitCode ?? server.signalCode}.`);
    const health = await fetch(`${url}/health`).catch(() => null);
    if (health?.ok) break;
    await wait(POLL_MS);
  }
  return servedModel(url);
}

/** Name of the first model of an OpenAI-compatible server. */
export async function servedModel(url: string): Promise<string> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return data[0]!.id;
}

/** The compiled command line. */
export const CLI = fileURLToPath(new URL('../../dist/bin/skein.js', import.meta.url));

/** Starts `skein serve` with these arguments. */
export function spawnSkein(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [CLI, 'serve', ...args], { stdio: 'ignore' });
}
