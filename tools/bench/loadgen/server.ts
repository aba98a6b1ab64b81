import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchOptions, runBenchmark as RunBenchmark } from '../../../loadgen/index.js';
import { launcherOf } from '../../../loadgen/placement.js';

// The library is taken as it is built: worker processes are started from there.
const library = new URL('../../../dist/loadgen/index.js', import.meta.url).href;
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

/** A server of prebuilt answers while `use` runs: see prebuilt-server.mjs. With `cpu` it has that processor. */
export async function withServer<T>(
  shape: { tokens: number; delay?: number; hold?: number; cpu?: string },
  use: (server: Prebuilt) => Promise<T>,
): Promise<T> {
  const args = [shape.tokens, shape.delay ?? 0, shape.hold ?? 0].map(String);
  const command = [
    ...launcherOf(shape.cpu ?? null),
    process.execPath,
    script('./prebuilt-server.mjs'),
    ...args,
  ];
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
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
  kind: 'raw' | 'undici',
  { port }: Prebuilt,
  seconds: number,
  connections: number,
): Promise<T> {
  const args = [script('./reference-client.mjs'), kind, String(port), String(seconds), BODY];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, String(connections)]);
  return JSON.parse(stdout) as T;
}

/** A reference client that stays: each call is a round of `seconds` at `rate` requests a second. */
export function pacedReference<T>(
  kind: 'paced-raw' | 'paced-undici',
  { port }: Prebuilt,
  seconds: number,
  rate: number,
): { round(): Promise<T>; close(): void } {
  const args = [script('./reference-client.mjs'), kind, String(port), String(seconds), BODY, String(rate)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    round: async () => {
      child.stdin.write('\n');
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`The reference client ${kind} ended.`);
      return JSON.parse(value) as T;
    },
    close: () => void child.kill(),
  };
}

/** Options that all runs against a prebuilt server have in common. */
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

type Report = Awaited<ReturnType<typeof RunBenchmark>>;

/** The first run. @throws Error where a request of any run failed. */
export function allCompleted({ runs }: Report): Report['runs'][number] {
  for (const { requests } of runs) {
    const failed = requests.total - requests.outcomes.completed;
    if (failed > 0) throw new Error(`${failed} requests failed: ${JSON.stringify(requests.messages[0])}`);
  }
  return runs[0]!;
}
