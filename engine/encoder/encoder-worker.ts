import { performance } from 'node:perf_hooks';
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { EncoderAnswer, EncoderCommand, EncoderInfo } from '../../callbacks/encoder-messages.js';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { SeatData } from '../../callbacks/ranks-options.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import { Doorbell, type WorkerLife } from '../../callbacks/worker-messages.js';
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

/** Loads the encoder and answers batches until it is told to end; sleeps at the doorbell while there are none. */
async function main({
  enginePath,
  params,
  encoderModule,
  seat,
  port,
  ...wires
}: EncoderWorkerData & WorkerWires) {
  const startMs = performance.now();
  const load = encoderModule
    ? ((await import(encoderModule)) as { loadEncoder: typeof loadEncoder }).loadEncoder
    : loadEncoder;
  const encoder = await load(enginePath, params, new Int32Array(wires.heartbeat), seat ?? undefined);
  const info = describe(encoder, performance.now() - startMs);
  port.postMessage({ type: 'ready', info } satisfies WorkerLife<EncoderInfo>);
  const doorbell = new Doorbell(wires.doorbell);
  const heartbeat = new Heartbeat(wires.heartbeat);
  for (;;) {
    heartbeat.beat();
    const bell = doorbell.read();
    const command = receiveMessageOnPort(port)?.message as EncoderCommand | undefined;
    if (command === undefined) {
      heartbeat.sleep();
      doorbell.wait(bell, Number.POSITIVE_INFINITY);
      continue;
    }
    if (command.type === 'shutdown') break;
    const answer: EncoderAnswer = encodeBatch(encoder, command.sequences);
    port.postMessage(answer, [answer.rows.buffer as ArrayBuffer]);
  }
  encoder.close();
  port.postMessage({ type: 'closed' } satisfies WorkerLife<EncoderInfo>);
  port.close();
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
