/** Runs a single side of the bench in processes of its own: run-side.ts SIDE_AS_JSON writes its measurements as JSON. */
import { readFileSync } from 'node:fs';
import type { GptManagerOptions } from '../../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../../callbacks/types.js';
import type { GptManager } from '../../../host/gpt-manager.js';
import { median } from '../../support/statistics.js';

export interface Side {
  /** URL of the compiled package. */
  library: string;
  enginePath: string;
  vocabSize: number;
  isolate: boolean;
  threads: number;
  sequences: number[];
  prompt: number;
  generate: number;
}

export interface Measured {
  /** From the constructor to `ready`. */
  startMs: number;
  /** Time to the first token of a request that is alone. */
  firstTokenMs: number;
  /** By number of sequences, from when all of them generate to the last token. */
  tokensPerSecond: number[];
  /** Processor time of all its processes for a token, by number of sequences, prompts included. */
  cpuMsPerToken: number[];
  /** Memory of all processes of the side; each page that they share is counted once. */
  memoryBytes: number;
}

const FIRST_TOKENS = 15;
const side = JSON.parse(process.argv[2]!) as Side;
const { GptManager: Manager } = (await import(side.library)) as {
  GptManager: new (options: GptManagerOptions) => GptManager;
};

const waiting: InferenceRequest[] = [];
/** Called with each response, and whether it is its request's last. */
let onResponse: (final: boolean, requestId: bigint) => void = () => {};
let nextId = 1n;

const startedMs = performance.now();
const manager = new Manager({
  enginePath: side.enginePath,
  modelType: 'InflightFusedBatching',
  maxBeamWidth: 1,
  schedulerPolicy: 'GUARANTEED_NO_EVICT',
  getInferenceRequests: (max) => waiting.splice(0, max),
  sendResponse: (requestId, _outputs, final, error) => {
    if (error !== '') throw new Error(error);
    onResponse(final, requestId);
  },
  onError: (error) => {
    throw error;
  },
  optionalParams: {
    isolate: side.isolate,
    threads: side.threads,
    enableChunkedContext: true,
    maxNumSequences: Math.max(...side.sequences),
    kvCacheConfig: { maxTokens: Math.max(...side.sequences) * 256 },
  },
});
await manager.ready;
const startMs = performance.now() - startedMs;

function request(generate: number): InferenceRequest {
  const requestId = nextId++;
  const data = Int32Array.from(
    { length: side.prompt },
    (_, i) => 3 + ((Number(requestId) * 7919 + i * 131) % (side.vocabSize - 3)),
  );
  return {
    requestId,
    inputs: {
      input_ids: { shape: [1, side.prompt], data },
      request_output_len: { shape: [1, 1], data: Int32Array.of(generate) },
      runtime_top_k: { shape: [1], data: Int32Array.of(1) },
      streaming: { shape: [1], data: Uint8Array.of(1) },
    },
  };
}

async function firstTokenMs(): Promise<number> {
  const begin = performance.now();
  let first: number | null = null;
  await new Promise<void>((resolve) => {
    onResponse = (final) => {
      first ??= performance.now() - begin;
      if (final) resolve();
    };
    waiting.push(request(2));
    manager.wake();
  });
  return first!;
}

async function rates(sequences: number): Promise<{ tokensPerSecond: number; cpuMsPerToken: number }> {
  const cpuBefore = cpuMs();
  const begun = new Set<bigint>();
  let allBegunMs = 0;
  let tokens = 0;
  let running = sequences;
  await new Promise<void>((resolve) => {
    onResponse = (final, requestId) => {
      if (begun.size === sequences) tokens++;
      else if (begun.add(requestId).size === sequences) allBegunMs = performance.now();
      if (final && --running === 0) resolve();
    };
    for (let i = 0; i < sequences; i++) waiting.push(request(side.generate));
    manager.wake();
  });
  return {
    tokensPerSecond: (1000 * tokens) / (performance.now() - allBegunMs),
    cpuMsPerToken: (cpuMs() - cpuBefore) / (sequences * side.generate),
  };
}

const pids = () => [process.pid, ...(manager.pid === null ? [] : [manager.pid])];

/** Processor time of all threads, in user and kernel mode. */
function cpuMs(): number {
  return pids().reduce((sum, pid) => {
    // After the name, which may hold anything, come the third field and those after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
    return sum + 10 * (Number(fields[11]) + Number(fields[12]));
  }, 0);
}

function memoryBytes(): number {
  return pids().reduce((sum, pid) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return sum + 1024 * Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]);
  }, 0);
}

await firstTokenMs();
const firsts: number[] = [];
for (let i = 0; i < FIRST_TOKENS; i++) firsts.push(await firstTokenMs());
const measured = [];
for (const sequences of side.sequences) measured.push(await rates(sequences));
const result: Measured = {
  startMs,
  firstTokenMs: median(firsts),
  tokensPerSecond: measured.map(({ tokensPerSecond }) => tokensPerSecond),
  cpuMsPerToken: measured.map(({ cpuMsPerToken }) => cpuMsPerToken),
  memoryBytes: memoryBytes(),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
await manager.shutdown();
