import { closeSync, fchmodSync, fdatasyncSync, ftruncateSync, openSync, statfsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { codeOf } from '../../base/skein-error.js';
import { defaultThreads } from '../../base/topology.js';
import { type Checkpoint, CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { ggufParts } from '../../models/checkpoints/gguf-parts.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ConvertJob } from '../directory/convert-job.js';
import type { EnginePrecision, OutputPrecision } from '../directory/engine-directory.js';
import { type EngineManifest, type EngineTensor, FORMAT_VERSIONS } from '../directory/engine-directory.js';
import { sourceFileOf } from '../directory/source-tensors.js';
import { storedParts } from '../directory/stored-precision.js';
import { storedBytes } from '../directory/weight-blocks.js';
import { nativeAddonAvailable } from '../executors/native/load-addon.js';
import { sourceChecksum } from '../executors/source-checksum.js';
import type { BuildAsideOptions } from './builder.js';
import { convertJobs } from './convert-jobs.js';
import { EngineError, layOutWeights } from './engine.js';
import { piecesOf, staysInSource } from './source-placement.js';
import { type ConvertWeights, weightConverter } from './weight-converter.js';
import { CAN_SUM, withChecksums } from './weights-checksum.js';

type WriteOptions = BuildAsideOptions & { precision: EnginePrecision; outputPrecision: OutputPrecision };

/** What engine.json says of the weights. */
export type WrittenWeights = Pick<
  EngineManifest,
  'formatVersion' | 'weightsByteLength' | 'tensors' | 'sourceFile'
>;

/** Bytes of weights converted before the signal and the event loop are checked again. */
const BYTES_PER_STEP = 32 * 1024 * 1024;

/**
 * Writes weights.bin into a folder that becomes `target`: all weights, or those that do not stay in the model's file. The others are
 * read once, for their checksums, unless packing finds these.
 *
 * @throws CheckpointError if the model is at fault, EngineError if the folder is
 */
export async function writeWeights(
  { directory, target }: { directory: string; target: string },
  checkpoint: Pick<Checkpoint, 'format' | 'tensors'>,
  plan: NetworkPlan,
  options: WriteOptions,
): Promise<WrittenWeights> {
  const stays =
    options.leavesMatrices && nativeAddonAvailable() ? staysInSource(checkpoint, plan) : undefined;
  const partsOf: Parameters<typeof layOutWeights>[3] = (weight) => storedParts(checkpoint, weight);
  const { tensors, byteLength, elsewhere } = layOutWeights(
    plan,
    options.precision,
    options.outputPrecision,
    partsOf,
    stays,
  );
  checkSpace(directory, target, byteLength);
  const staying = new Map(elsewhere.map((tensor): [EngineTensor, ConvertJob[]] => [tensor, []]));
  const copied: ConvertJob[] = [];
  for (const { tensor, job } of convertJobs(checkpoint, plan, tensors))
    (staying.get(tensor) ?? copied).push(job);
  const files = filesOf(staying);
  const weightsFile = join(directory, 'weights.bin');
  const fd = openSync(weightsFile, 'w+');
  try {
    ftruncateSync(fd, byteLength);
    await convertAll(weightsFile, copied, byteLength, options);
    const sums = await sumStaying(staying, files, options);
    const total = elsewhere.reduce((sum, tensor) => sum + tensor.byteLength, byteLength);
    options.onProgress?.({ phase: 'finishing', done: total, total });
    if (options.isDurable || !CAN_SUM) fdatasyncSync(fd);
    // Servers map the file, and truncating a mapped file kills the processes that have it mapped (SIGBUS), so it
    // becomes read-only.
    fchmodSync(fd, 0o444);
    const here = tensors.filter((tensor) => !staying.has(tensor));
    const summed = await withChecksums(weightsFile, here, options.threads ?? defaultThreads());
    const byTensor = new Map([
      ...sums,
      ...here.map((tensor, i): [EngineTensor, EngineTensor] => [tensor, summed[i]!]),
    ]);
    return {
      formatVersion: FORMAT_VERSIONS[Math.min(files.length, 2)]!,
      weightsByteLength: byteLength,
      ...(files.length === 0 ? {} : { sourceFile: sourceFileOf(files.map((file) => resolve(file))) }),
      tensors: tensors.map((tensor) => byTensor.get(tensor)!),
    };
  } finally {
    closeSync(fd);
  }
}

/** Files of which tensors stay where they are: the parts of one GGUF. */
function filesOf(staying: ReadonlyMap<EngineTensor, ConvertJob[]>): string[] {
  const [jobs] = staying.values();
  return jobs === undefined ? [] : ggufParts(jobs[0]!.source);
}

/** The tensors that stay in the model's file, each with its pieces and, unless they are found later, its checksum. */
async function sumStaying(
  staying: ReadonlyMap<EngineTensor, ConvertJob[]>,
  files: readonly string[],
  options: WriteOptions,
): Promise<Map<EngineTensor, EngineTensor>> {
  const threads = options.threads ?? defaultThreads();
  const total = [...staying.keys()].reduce((sum, { byteLength }) => sum + byteLength, 0);
  const summed = new Map<EngineTensor, EngineTensor>();
  let done = 0;
  for (const [tensor, jobs] of staying) {
    const placed = { ...tensor, pieces: piecesOf(jobs, files) };
    if (options.sumsWhenPacked) {
      summed.set(tensor, placed);
      continue;
    }
    options.onProgress?.({ phase: 'summing', done, total });
    try {
      const checksum = await sourceChecksum(jobs, threads);
      summed.set(tensor, { ...placed, checksum });
    } catch (error) {
      throw new CheckpointError(messageOf(error), { cause: error });
    }
    options.signal?.throwIfAborted();
    done += tensor.byteLength;
  }
  return summed;
}

async function convertAll(
  weightsFile: string,
  jobs: readonly ConvertJob[],
  total: number,
  options: WriteOptions,
): Promise<void> {
  const convert = weightConverter();
  const threads = options.threads ?? defaultThreads();
  const { signal } = options;
  let done = 0;
  for (let next = 0; next < jobs.length; ) {
    options.onProgress?.({ phase: 'converting', done, total });
    const step: ConvertJob[] = [];
    for (let bytes = 0; next < jobs.length && bytes < BYTES_PER_STEP; next++) {
      const job = jobs[next]!;
      const size = storedBytes(job.targetType, job.rows, job.columns);
      step.push(job);
      bytes += size;
      done = job.targetOffset + size;
    }
    await convertStep(convert, weightsFile, step, { threads, signal });
  }
}

/** Runs a conversion; its errors say whether the model or the output is at fault. */
async function convertStep(
  convert: ConvertWeights,
  weightsFile: string,
  jobs: readonly ConvertJob[],
  options: Parameters<ConvertWeights>[2],
): Promise<void> {
  try {
    await convert(weightsFile, jobs, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    const Kind = codeOf(error) === 'SKEIN_TARGET_FILE' ? EngineError : CheckpointError;
    throw new Kind(messageOf(error), { cause: error });
  }
}

function checkSpace(directory: string, target: string, needed: number): void {
  const { bavail, bsize } = statfsSync(directory);
  if (bavail * bsize < needed) {
    const size = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
    throw new EngineError(
      `${target}: the engine takes ${size(needed)}, and its disk has ${size(bavail * bsize)} left; make room, or name a folder of another disk.`,
    );
  }
}
