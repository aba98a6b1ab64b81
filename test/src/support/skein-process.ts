import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ModelOptions } from 'skein';
import { bundledChild } from './bundled-child.js';

export const cliPath = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));

/** Engines built by tests; kept from run to run, as a user's cache is. */
export const testCacheDir = join(tmpdir(), 'skein-test-cache');

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** What a command says, without the line that it has for a load of more than two seconds. */
export const withoutLoading = (stderr: string) => stderr.replace(/^skein: loading .*\n/m, '');

/** Environment without the options of the user who runs the tests. */
export function cleanEnvironment(extra: Record<string, string>): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('SKEIN_') || name === 'SKEIN_ISA',
  );
  return { ...Object.fromEntries(kept), ...extra };
}

/** Runs the compiled command line to its end. */
export async function runCli(
  args: readonly string[],
  options: {
    environment?: Record<string, string>;
    cli?: string;
    /** Text for stdin; default: nothing, from /dev/null. */
    input?: string;
    /** Options of Node.js. */
    nodeOptions?: readonly string[];
  } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), options.cli ?? cliPath, ...args], {
    env: cleanEnvironment(options.environment ?? {}),
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  child.stdin?.on('error', () => {}).end(options.input);
  const output = gather(child);
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { code, signal, ...output() };
}

/** URL of the fake executor as a module; the options are those of load-fake-executor. */
export function fakeExecutorModule(options: Record<string, number | string>): string {
  const url = new URL('../../support/modules/fake-executor.mjs', import.meta.url);
  for (const [name, value] of Object.entries(options)) url.searchParams.set(name, String(value));
  return url.href;
}

export interface SkeinProcess {
  url: string;
  child: ChildProcess;
  output(): { stdout: string; stderr: string };
  ended: Promise<Ended>;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<Ended>;
}

/** host:port of a server that was started with --grpc-port. */
export function grpcAddress({ output }: SkeinProcess): string {
  const found = /^ {2}the same over gRPC: grpcs?:\/\/(\S+)$/m.exec(output().stdout)?.[1];
  if (found === undefined) throw new Error('The server does not say where it listens for gRPC.');
  return found;
}

/** Starts `skein serve` on a free port and waits until it says where it listens. */
export function startServer(
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<SkeinProcess> {
  return start([cliPath, 'serve', '--port', '0', '--cache-dir', testCacheDir, ...args], environment);
}

/** The same with the fake executor; `flags` are options by their names in camelCase, as text; `more` has no flags. */
export async function startFakeServer(
  flags: Record<string, string | string[]>,
  fakeOptions: Record<string, number | string>,
  more: Pick<ModelOptions, 'workerRestart'> = {},
): Promise<SkeinProcess> {
  const script = await bundledChild(new URL('./serve-child.mjs', import.meta.url));
  const all = { port: '0', cacheDir: testCacheDir, ...flags };
  const args = [script, JSON.stringify(all), fakeExecutorModule(fakeOptions), JSON.stringify(more)];
  return start(['--expose-gc', ...args], {}, ['ipc']);
}

/** Bytes that a fake server's main thread holds after its garbage is gone, and those of the process. */
export async function memoryOf({
  child,
}: SkeinProcess): Promise<Record<'heap' | 'external' | 'rss', number>> {
  child.send('memory');
  const [memory] = await once(child, 'message');
  return memory;
}

/** Starts Node.js with these arguments, and waits for nothing. */
export function spawnCli(
  args: readonly string[],
  environment: Record<string, string>,
  channel: readonly 'ipc'[] = [],
): Pick<SkeinProcess, 'child' | 'output' | 'ended'> {
  const child = spawn(process.execPath, args, {
    env: cleanEnvironment(environment),
    stdio: ['ignore', 'pipe', 'pipe', ...channel],
  });
  const output = gather(child);
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, ...output() }));
  return { child, output, ended };
}

export async function start(
  args: readonly string[],
  environment: Record<string, string>,
  channel: readonly 'ipc'[] = [],
): Promise<SkeinProcess> {
  const { child, output, ended } = spawnCli(args, environment, channel);
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', () => {
      const found = /at (https?:\S+)\/v1/.exec(output().stdout)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then(({ code, stderr }) => reject(new Error(`skein serve ended with ${code}: ${stderr}`)));
  });
  return {
    url,
    child,
    output,
    ended,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

function gather(child: ChildProcess): () => { stdout: string; stderr: string } {
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return () => ({ stdout, stderr });
}
