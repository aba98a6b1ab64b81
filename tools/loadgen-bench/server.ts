import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchOptions, runBenchmark as RunBenchmark } from '../loadgen/index.js';

// As it is built: worker processes are started from there.
const library = new URL('../../dist/tools/loadgen/index.js', import.meta.url).href;
const { runBenchmark } = (await import(library)) as { runBenchmark: typeof RunBenchmark };

export { runBenchmark };

export const BODY = JSON.stringify({
  model: 'm',
  messages: [{ role: 'user', content: 'word '.repeat(20) }],
  max_tokens: 16,
});

export interface Prebuilt {
  port: number;
  url: string;
  process: ChildProcess;
}

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A server of prebuilt answers while `use` runs: see prebuilt-server.mjs. */
export async function withServer<T>(
  shape: { tokens: number; delay?: number; hold?: number },
  use: (server: Prebuilt) => Promise<T>,
): Promise<T> {
  const args = [shape.tokens, shape.delay ?? 0, shape.hold ?? 0].map(String);
  const child = spawn(process.execPath, [script('./prebuilt-server.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [text] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
    const port = Number(text.trim());
    return await use({ port, url: `http://127.0.0.1:${port}`, process: child });
  } finally {
    child.kill();
  }
}

/** See reference-client.mjs. */
export async function reference<T>(
  kind: 'raw' | 'undici' | 'paced-raw' | 'paced-undici',
  { port }: Prebuilt,
  seconds: number,
  load: number,
): Promise<T> {
  const args = [script('./reference-client.mjs'), kind, String(port), String(seconds), BODY, String(load)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as T;
}

/** What all runs against it have in common. */
export function optionsFor({ url }: Prebuilt, more: Partial<BenchOptions>): BenchOptions {
  return {
    url,
    model: 'm',
    data: {
      kind: 'random',
      inputTokens: { kind: 'fixed', tokens: 20 },
      outputTokens: { kind: 'fixed', tokens: 16 },
      samples: 100,
    },
    workers: 1,
    scrape: false,
    calibrate: false,
    ...more,
  };
}

export function allCompleted(
  report: Awaited<ReturnType<typeof RunBenchmark>>,
): Awaited<ReturnType<typeof RunBenchmark>>['runs'][number] {
  const [run] = report.runs;
  const failed = run!.requests.total - run!.requests.outcomes.completed;
  if (failed > 0) throw new Error(`${failed} requests failed: ${JSON.stringify(run!.requests.messages[0])}`);
  return run!;
}
