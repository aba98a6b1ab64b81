import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.js';

/** A server that answers, and how it came to. */
export interface Start {
  url: string;
  /** Tokens of the KV cache, as the server says itself. */
  kvTokens: number;
  kvDtype: string;
  /** Milliseconds since the spawn, in their order. */
  marksMs: Record<string, number>;
  /** Processor time of all threads, until the first answer. */
  processorMs: number;
  processorTimeMs(): number;
  memory(): { resident: number; files: number; anonymous: number };
  stop(): Promise<void>;
}

const cli = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));
const marks = fileURLToPath(new URL('./print-marks.mjs', import.meta.url));
/** Ticks of /proc/PID/stat; 100 a second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Starts `skein serve` and asks for its health until it is well. */
export async function startServer(args: readonly string[]): Promise<Start> {
  const port = await freePort();
  const spawnedAt = Date.now();
  const child = spawn(process.execPath, ['--import', marks, cli, 'serve', '--port', String(port), ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const ended = once(child, 'exit');
  let greeting = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    greeting += text;
  });
  const url = `http://127.0.0.1:${port}`;
  const healthyAt = await Promise.race([healthy(url), ended.then(() => null)]);
  if (healthyAt === null) throw new Error('The server ended before it was ready.');
  const pid = child.pid!;
  const processorMs = processorTimeMs(pid);
  child.send('marks');
  const [reported] = (await once(child, 'message')) as [Record<string, number>];
  const marksMs = Object.fromEntries(Object.entries(reported).map(([name, at]) => [name, at - spawnedAt]));
  const [, kvTokens, kvDtype] = /KV cache of (\d+) tokens in (\w+)/.exec(greeting) ?? [];
  return {
    url,
    kvTokens: Number(kvTokens),
    kvDtype: kvDtype!,
    marksMs: { ...marksMs, 'GET /health is 200': healthyAt - spawnedAt },
    processorMs,
    processorTimeMs: () => processorTimeMs(pid),
    memory: () => memoryOf(pid),
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function healthy(url: string): Promise<number> {
  for (;;) {
    const status = await new Promise<number>((resolve) => {
      get(`${url}/health`, (response) => resolve(response.resume().statusCode!)).on('error', () =>
        resolve(0),
      );
    });
    if (status === 200) return Date.now();
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function processorTimeMs(pid: number): number {
  // The fields after the name, which may hold anything: state, then the fields from 4 on; 14 and 15 are user
  // and system time.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}

function memoryOf(pid: number): { resident: number; files: number; anonymous: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytes = (name: string) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  return { resident: bytes('VmRSS'), files: bytes('RssFile'), anonymous: bytes('RssAnon') };
}
