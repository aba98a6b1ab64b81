import { performance } from 'node:perf_hooks';
import { workerData } from 'node:worker_threads';
import type { EncoderInfo, EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { SeatData } from '../../callbacks/ranks-options.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { answerBatches } from '../worker/answer-batches.js';
import { runWorker } from '../worker/run-worker.js';
import { encodeBatch } from './encode-batch.js';
import { type EncoderParams, type LoadedEncoder, loadEncoder } from './load-encoder.js';

/** Data that the host gives to an encoder's worker. */
export interface EncoderWorkerData {
  enginePath: string;
  params: EncoderParams;
  /** Module that exports `loadEncoder` in place of the native one: for tests. */
  encoderModule: string | null;
  /** The encoder is rank 0 of a group; null: it is alone. */
  seat: SeatData | null;
}

const data = workerData as EncoderWorkerData & WorkerWires;
await runWorker(data, () => main(data));

async function main({ enginePath, params, encoderModule, seat, ...wires }: EncoderWorkerData & WorkerWires) {
  const startMs = performance.now();
  const load = encoderModule
    ? ((await import(encoderModule)) as { loadEncoder: typeof loadEncoder }).loadEncoder
    : loadEncoder;
  const encoder = await load(enginePath, params, new Int32Array(wires.heartbeat), seat ?? undefined);
  answerBatches<EncoderSequence, EncoderInfo>(wires, {
    info: describe(encoder, performance.now() - startMs),
    compute: (sequences) => encodeBatch(encoder, sequences),
    close: () => encoder.close(),
  });
}

function describe(encoder: LoadedEncoder, loadMs: number): EncoderInfo {
  const {
    fingerprint,
    executor,
    executorFallback,
    instructionSet,
    threads,
    vocabSize,
    outputWidth,
    config,
    limits,
    memory,
  } = encoder;
  const { head, tokenTypes } = config;
  return {
    fingerprint,
    executor,
    executorFallback: executorFallback ?? null,
    instructionSet,
    threads,
    vocabSize,
    outputWidth,
    head,
    tokenTypes,
    limits,
    memory,
    loadMs,
  };
}
