import {
  closeSync,
  existsSync,
  fchmodSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import {
  discardBuildDirectory,
  makeBuildDirectory,
  publishBuildDirectory,
} from '../../base/build-directory.js';
import { onlyTold } from '../../base/error-reporter.js';
import { messageOf } from '../../base/error-text.js';
import { skeinVersion } from '../../base/package-info.js';
import { codeOf } from '../../base/skein-error.js';
import { writeProblem } from '../../base/system-problem.js';
import { defaultThreads } from '../../base/topology.js';
import { planNetwork } from '../../models/architectures/index.js';
import { type Checkpoint, CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../models/model-config.js';
import { makeTablesFile, TABLES_FILE_NAME } from '../../models/tokenizer/bpe-tables.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { EnginePrecision, OutputPrecision } from '../executors/executor.js';
import type { ConvertJob } from '../executors/native/addon.js';
import { type Engine, EngineError, layOutWeights, openEngine } from './engine.js';
import {
  ENGINE_FORMAT_VERSION,
  type EngineManifest,
  type EngineTensor,
  tensorsByWeight,
} from './engine-directory.js';
import { storedParts } from './stored-precision.js';
import { storedBytes } from './weight-blocks.js';
import { type ConvertWeights, weightConverter } from './weight-converter.js';
import {
  automaticOutputPrecision,
  automaticPrecision,
  checkOutputPrecision,
  checkWeightPrecision,
} from './weight-precision.js';
import { CAN_SUM, withChecksums } from './weights-checksum.js';

/**
 * Progress of a build; `waiting`: another process builds the same engine. done and total are bytes of weights (0 if
 * none are known).
 */
export interface BuildProgress {
  phase: 'waiting' | 'reading' | 'converting' | 'finishing';
  done: number;
  total: number;
}

export interface BuildOptions {
  /** A folder with safetensors, a .gguf file, or a folder with one GGUF. */
  model: string;
  outputDirectory: string;
  /** 'f32', 'bf16', 'int8', 'int4', 'stored' or 'auto'. */
  precision: string;
  /**
   * Precision of the embedding and the output layer: 'f32', 'bf16', 'int8', 'stored' or 'auto' (the default: see
   * automaticOutputPrecision).
   */
  outputPrecision?: string;
  /** Threads that convert; default: physical cores, without efficiency cores, within the container's CPU quota. */
  threads?: number;
  onProgress?: (progress: BuildProgress) => void;
  /** Aborts the build, which then leaves nothing behind. */
  signal?: AbortSignal;
}

/** Bytes of weights converted before the signal and the event loop are checked again. */
const BYTES_PER_STEP = 32 * 1024 * 1024;

/**
 * Builds an engine directory from a checkpoint: written aside, then renamed, so that the output is complete or absent.
 * An existing engine in its place is replaced; any other non-empty folder is refused. @throws CheckpointError if the
 * model is at fault, EngineError if the output is
 */
export async function buildEngine(options: BuildOptions): Promise<Engine> {
  const target = resolve(options.outputDirectory);
  if (existsSync(target) && !isReplaceable(target)) {
    throw new EngineError(`${target}: exists and is not an engine directory; it is left as it is.`);
  }
  const directory = await buildAside(target, { ...options, isDurable: true });
  try {
    replace(directory, target);
  } catch (error) {
    discardBuildDirectory(directory);
    throw new EngineError(`${target}: cannot be written: ${writeProblem(error)}`, {
      cause: error,
    });
  }
  return openEngine(target);
}

/** The options of a build beside its target. */
export interface BuildAsideOptions extends Omit<BuildOptions, 'outputDirectory'> {
  /**
   * True: waits until the weights are on the disk. Where nobody keeps the engine for good, their checksums do: what a power cut has
   * left out is found by the next start, which builds the engine anew.
   */
  isDurable: boolean;
}

/** Builds into a directory beside `target` and returns its path; the caller publishes or discards it. */
export async function buildAside(target: string, given: BuildAsideOptions): Promise<string> {
  const onProgress = given.onProgress && onlyTold('onProgress', given.onProgress);
  const options = { ...given, ...(onProgress && { onProgress }) };
  const { model, signal } = options;
  const wanted = checkWeightPrecision(options.precision);
  const wantedOutput = checkOutputPrecision(options.outputPrecision ?? 'auto');
  onProgress?.({ phase: 'reading', done: 0, total: 0 });
  const checkpoint = openCheckpoint(model);
  signal?.throwIfAborted();
  const directory = makeTarget(target);
  try {
    const plan = planNetwork(checkpoint.config);
    const precision = wanted === 'auto' ? automaticPrecision(checkpoint, plan) : wanted;
    const outputPrecision =
      wantedOutput === 'auto' ? automaticOutputPrecision(precision, checkpoint, plan) : wantedOutput;
    await writeEngine({ directory, target }, checkpoint, plan, { precision, outputPrecision }, options);
    return directory;
  } catch (error) {
    discardBuildDirectory(directory);
    throw named(target, error);
  }
}

async function writeEngine(
  { directory, target }: { directory: string; target: string },
  checkpoint: Checkpoint,
  plan: NetworkPlan,
  precisions: { precision: EnginePrecision; outputPrecision: OutputPrecision },
  options: BuildAsideOptions,
): Promise<void> {
  const { precision, outputPrecision } = precisions;
  const partsOf = (weight: PlanWeight) => storedParts(checkpoint, weight);
  const { tensors, byteLength } = layOutWeights(plan, precision, outputPrecision, partsOf);
  checkSpace(directory, target, byteLength);
  const weightsFile = join(directory, 'weights.bin');
  const fd = openSync(weightsFile, 'w');
  try {
    ftruncateSync(fd, byteLength);
    await convertAll(weightsFile, convertJobs(checkpoint, plan, tensors), byteLength, options);
    options.onProgress?.({ phase: 'finishing', done: byteLength, total: byteLength });
    if (options.isDurable || !CAN_SUM) fdatasyncSync(fd);
    // Servers map the file, and truncating a mapped file kills the processes that have it mapped (SIGBUS), so it
    // becomes read-only.
    fchmodSync(fd, 0o444);
  } finally {
    closeSync(fd);
  }
  writeTokenizer(directory, checkpoint);
  const { config, format, sourceHash } = checkpoint;
  const manifest: EngineManifest = {
    formatVersion: ENGINE_FORMAT_VERSION,
    skeinVersion: skeinVersion(),
    ...precisions,
    config,
    maxInputLen: longestSequence(config),
    maxSeqLen: longestSequence(config),
    source: { path: resolve(checkpoint.path), format, hash: sourceHash },
    weightsByteLength: byteLength,
    tensors: await withChecksums(weightsFile, tensors, options.threads ?? defaultThreads()),
  };
  writeFileSync(join(directory, 'engine.json'), `${JSON.stringify(manifest, null, 1)}\n`, { flush: true });
}

/**
 * Length of the longest sequence. Dynamic RoPE stretches beyond the positions of the config; the config already counts
 * in all other scalings.
 */
export function longestSequence({ maxPositions, rope }: ModelConfig): number {
  return rope.scaling.type === 'dynamic'
    ? Math.floor(maxPositions * Math.max(1, rope.scaling.factor))
    : maxPositions;
}

/**
 * Makes one job per source: the sources of a stacked weight follow one another in the rows of its tensors, and no source has rows
 * in two of them.
 */
function convertJobs(
  checkpoint: Checkpoint,
  plan: NetworkPlan,
  tensors: readonly EngineTensor[],
): ConvertJob[] {
  const ofWeight = tensorsByWeight(tensors);
  return plan.weights.flatMap((weight) => {
    const parts = ofWeight.get(weight.name)!.values();
    let part = parts.next().value!;
    let done = 0;
    return weight.sources.map(({ name, rows, columns }): ConvertJob => {
      if (done === part.rows && weight.kind === 'matrix') {
        part = parts.next().value!;
        done = 0;
      }
      const { dtype, offset } = part;
      const tensor = checkpoint.tensors.get(name)!;
      // In the bias of interleaved heads, each element counts as a row.
      const asColumn = weight.kind === 'vector' && tensor.interleavedHeads !== undefined;
      const before =
        weight.kind === 'vector' ? storedBytes(dtype, 1, done) : storedBytes(dtype, done, columns);
      done += weight.kind === 'vector' ? columns : rows;
      return {
        source: tensor.file,
        sourceOffset: tensor.offset,
        sourceByteLength: tensor.byteLength,
        type: tensor.type,
        rows: asColumn ? columns : rows,
        columns: asColumn ? 1 : columns,
        interleavedHeads: tensor.interleavedHeads ?? 0,
        transposed: tensor.transposed ?? false,
        addend: tensor.addend ?? 0,
        targetOffset: offset + before,
        targetType: dtype,
      };
    });
  });
}

async function convertAll(
  weightsFile: string,
  jobs: readonly ConvertJob[],
  total: number,
  options: BuildAsideOptions,
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

function writeTokenizer(directory: string, { tokenizer }: Checkpoint): void {
  const text = JSON.stringify(tokenizer.tokenizerJson);
  writeFileSync(join(directory, 'tokenizer.json'), text);
  const tables = makeTablesFile(text);
  if (tables !== null) writeFileSync(join(directory, TABLES_FILE_NAME), JSON.stringify(tables));
  writeFileSync(join(directory, 'tokenizer_config.json'), JSON.stringify(tokenizer.tokenizerConfig));
  if (tokenizer.chatTemplate !== null) {
    writeFileSync(join(directory, 'chat_template.jinja'), tokenizer.chatTemplate);
  }
}

function makeTarget(target: string): string {
  try {
    return makeBuildDirectory(target);
  } catch (error) {
    throw new EngineError(`${target}: cannot be written: ${writeProblem(error)}`, {
      cause: error,
    });
  }
}

/** Adds the target's name to errors of the file system; all others are clear already. */
function named(target: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const isSystemError = typeof code === 'string' && (error as NodeJS.ErrnoException).syscall !== undefined;
  return isSystemError
    ? new EngineError(`${target}: cannot be written: ${writeProblem(error)}`, { cause: error })
    : error;
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

function isReplaceable(target: string): boolean {
  try {
    const names = readdirSync(target);
    return names.length === 0 || names.includes('engine.json');
  } catch {
    return false;
  }
}

/** Puts the new directory in the place of the old one; processes that have the old one mapped keep it. */
function replace(directory: string, target: string): void {
  if (publishBuildDirectory(directory, target)) return;
  const old = makeBuildDirectory(target);
  renameSync(target, join(old, 'old'));
  if (!publishBuildDirectory(directory, target)) {
    throw new Error('another process writes there at the same time');
  }
  rmSync(old, { recursive: true, force: true });
  discardBuildDirectory(old);
}
