import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addressOf } from '../../listening-server.js';

/** Processor time in milliseconds. */
export interface ProcessorTime {
  /** The thread that serves HTTP. */
  main: number;
  /** All threads but this and the engine's: garbage collection, sockets, tokenizing. */
  helpers: number;
  /** The engine's thread, in which nothing is computed here. */
  engine: number;
}

export interface LoopDelay {
  longestMs: number;
  p99Ms: number;
  rss: number;
  heapUsed: number;
}

/** `skein serve` over the steady executor in a process of its own. */
export interface BenchServer {
  url: string;
  processorTime(): ProcessorTime;
  /** The event loop's delay while something happens. */
  delayDuring(work: () => Promise<void>): Promise<LoopDelay>;
  /** Writes a profile of the main thread while something happens. */
  profile(file: string, work: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

export interface BenchServerOptions {
  model: string;
  /** Tokens a second over all requests. */
  rate: number;
  maxSeqLen: number;
  maxNumSequences: number;
}

export async function startBenchServer(options: BenchServerOptions): Promise<BenchServer> {
  const { model, rate, maxSeqLen, maxNumSequences } = options;
  const folder = mkdtempSync(join(tmpdir(), 'skein-http-bench-'));
  const threadFile = join(folder, 'thread');
  const executor = new URL('./steady-executor.mjs', import.meta.url);
  executor.search = String(
    new URLSearchParams({ rate: String(rate), vocabSize: '49152', maxSeqLen: String(maxSeqLen), threadFile }),
  );
  const flags = { model, port: '0', maxActiveRequests: String(maxNumSequences), weights: 'bf16' };
  const script = fileURLToPath(new URL('./serve.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(flags), executor.href], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const url = await addressOf(child);
  const pid = child.pid!;
  const engineThread = readFileSync(threadFile, 'utf8');
  rmSync(folder, { recursive: true });
  const ask = async (question: string) => {
    const answer = once(child, 'message');
    child.send(question);
    return (await answer)[0] as LoopDelay;
  };
  return {
    url,
    processorTime: () => processorTime(pid, engineThread),
    delayDuring: async (work) => {
      await ask('begin');
      await work();
      return ask('end');
    },
    profile: async (file, work) => {
      await ask('profile');
      await work();
      await ask(`write ${file}`);
    },
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function processorTime(pid: number, engineThread: string): ProcessorTime {
  const time = { main: 0, helpers: 0, engine: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    // Nanoseconds on a processor come first.
    const ms = Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    if (thread === String(pid)) time.main += ms;
    else time[thread === engineThread ? 'engine' : 'helpers'] += ms;
  }
  return time;
}
