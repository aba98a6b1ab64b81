import type { ChildProcess } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningServer, withServer } from '../run-server.js';
import type { Values } from '../side.js';

const READ_BYTES = 4 << 20;
const MB = 1e6;

export interface StartedServer {
  /** The model's file. */
  file: string;
  start(port: number): ChildProcess;
  /** Folder in which the server keeps what it makes of the file, empty in front of the first start; null: it keeps nothing. */
  kept: string | null;
}

/**
 * Seconds from the start of a server's process until its first answer of a token, and what it holds then.
 *
 *   reading       the file, once, from the disk, by one thread
 *   first start   nothing of the file is in memory, and nothing was made of it yet
 *   later start   everything is there, and in the system's cache as far as that has room
 *
 * Resident memory counts the pages of files that the server has mapped; own memory is without them.
 */
export async function measureStarts({ file, start, kept }: StartedServer): Promise<Values> {
  dropFromCache(file);
  const readSeconds = seconds(() => readThrough(file));
  dropFromCache(file);
  const first = await startOnce(start);
  const later = await startOnce(start);
  return {
    readSeconds,
    firstStartSeconds: first.seconds,
    laterStartSeconds: later.seconds,
    residentMb: later.residentMb,
    ownMb: later.ownMb,
    keptMb: kept === null ? 0 : folderBytes(kept) / MB,
  };
}

function startOnce(start: StartedServer['start']) {
  const startMs = performance.now();
  return withServer(start, async (server) => {
    await answerOnce(server);
    return { seconds: (performance.now() - startMs) / 1000, ...memoryOf(server.pid) };
  });
}

async function answerOnce({ url, model }: RunningServer): Promise<void> {
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt: 'about', max_tokens: 1, temperature: 0 }),
  });
  if (!response.ok)
    throw new Error(`${url}/v1/completions answers ${response.status}: ${await response.text()}`);
  await response.text();
}

/** Resident memory of a process by /proc; NaN where there is none. */
function memoryOf(pid: number): { residentMb: number; ownMb: number } {
  const path = `/proc/${pid}/status`;
  const status = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const of = (name: string) => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status);
    return match === null ? Number.NaN : (Number(match[1]) * 1024) / MB;
  };
  return { residentMb: of('VmRSS'), ownMb: of('RssAnon') };
}

function seconds(run: () => void): number {
  const startMs = performance.now();
  run();
  return (performance.now() - startMs) / 1000;
}

function readThrough(file: string): void {
  const descriptor = openSync(file, 'r');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  try {
    while (readSync(descriptor, buffer) > 0);
  } finally {
    closeSync(descriptor);
  }
}

/** Has the system forget the file's pages, which must be on the disk. GNU's dd is the one that can, without any rights. */
function dropFromCache(file: string): void {
  if (process.platform !== 'linux') return;
  execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' });
}

/** Bytes of all files in a folder and its folders. */
function folderBytes(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => statSync(join(folder, name))).filter((status) => status.isFile());
  return files.reduce((sum, { size }) => sum + size, 0);
}
