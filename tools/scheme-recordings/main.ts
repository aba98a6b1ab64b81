/**
 * Records what the dashboard plays side by side: the same requests at the same times through V1, InflightBatching and
 * InflightFusedBatching, on this machine, the loop and the native executor alone. Random weights of SmolLM2-135M's shape,
 * which cost what trained ones cost. Every request runs to its own length.
 *
 *     npx tsx tools/scheme-recordings/main.ts        writes src/server/dashboard/page/schemes/recordings.json
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import type { Recordings, SchemeRecording } from '../../src/server/dashboard/page/schemes/recording.js';
import { type Course, runScheme } from '../bench/schemes/run-scheme.js';
import { openSetup } from '../bench/schemes/setup.js';
import { longestSequence, poissonArrivals, type WorkloadOptions } from '../bench/schemes/workload.js';

const SCHEMES: readonly ModelType[] = ['V1', 'InflightBatching', 'InflightFusedBatching'];
const FILE = new URL('../../src/server/dashboard/page/schemes/recordings.json', import.meta.url);

/** Few enough to be followed by eye, and more than run at once. */
const WORKLOAD: WorkloadOptions = {
  requests: 24,
  rate: 8,
  promptTokens: [32, 512],
  newTokens: 40,
  vocabSize: 49152,
  seed: 11,
};
const MAX_NUM_SEQUENCES = 8;
const WEIGHTS = 'bf16';

const tenth = (ms: number) => Math.round(10 * ms) / 10;

function recorded(modelType: ModelType, courses: readonly Course[], emptyShare: number): SchemeRecording {
  const requests = courses.map(({ chunks, arrivalMs, firstTokenMs, lastTokenMs, endMs, ...lengths }) => ({
    ...lengths,
    arrivalMs: tenth(arrivalMs),
    chunks: chunks.map(([begin, end]): [number, number] => [tenth(begin), tenth(end)]),
    firstTokenMs: tenth(firstTokenMs),
    lastTokenMs: tenth(lastTokenMs),
    endMs: tenth(endMs),
  }));
  return { modelType, requests, emptyShare: Math.round(1000 * emptyShare) / 1000 };
}

const threads = availableParallelism();
const { setupOf, executor, close } = openSetup({
  precision: WEIGHTS,
  maxNumSequences: MAX_NUM_SEQUENCES,
  maxSeqLen: longestSequence(WORKLOAD),
  longestPrompt: WORKLOAD.promptTokens[1],
  threads,
});
try {
  const schemes = SCHEMES.map((scheme) => {
    runScheme(setupOf(scheme), poissonArrivals({ ...WORKLOAD, requests: 3, rate: 1000 }));
    const { courses, emptyShare, tokensPerSecond } = runScheme(setupOf(scheme), poissonArrivals(WORKLOAD));
    process.stderr.write(`${scheme}: ${tokensPerSecond.toFixed(0)} tokens/s\n`);
    return recorded(scheme, courses, emptyShare);
  });
  const recordings: Recordings = {
    machine: cpus()[0]?.model.trim() ?? 'unknown',
    instructionSet: executor.instructionSet,
    threads,
    model: 'SmolLM2-135M',
    weights: WEIGHTS,
    maxNumSequences: MAX_NUM_SEQUENCES,
    schemes,
  };
  writeFileSync(fileURLToPath(FILE), `${JSON.stringify(recordings)}\n`);
} finally {
  close();
}
