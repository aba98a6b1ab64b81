import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  discardBuildDirectory,
  makeBuildDirectory,
  publishBuildDirectory,
} from '../../base/build-directory.js';
import { onlyTold } from '../../base/error-reporter.js';
import { skeinVersion } from '../../base/package-info.js';
import { writeProblem } from '../../base/system-problem.js';
import { RECOMMENDED_NAMES } from '../../callbacks/sampling-params.js';
import { planNetwork } from '../../models/architectures/index.js';
import type { Checkpoint, TokenizerFiles } from '../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import type { ModelConfig } from '../../models/model-config.js';
import { configuredList } from '../../models/tokenizer/named-templates.js';
import { makeTablesFile, TABLES_FILE_NAME } from '../../models/tokenizer/tables-file.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { EngineManifest, EnginePrecision, OutputPrecision } from '../directory/engine-directory.js';
import { type Engine, EngineError, openEngine } from './engine.js';
import { writeTower } from './tower-engine.js';
import {
  automaticOutputPrecision,
  automaticPrecision,
  checkOutputPrecision,
  checkWeightPrecision,
} from './weight-precision.js';
import { type WrittenWeights, writeWeights } from './weights-writer.js';

/**
 * Progress of a build; `waiting`: another process builds the same engine; `summing`: weights that stay in the model's file are summed
 * up. done and total are bytes of weights (0 if none are known).
 */
export interface BuildProgress {
  phase: 'waiting' | 'reading' | 'converting' | 'summing' | 'finishing';
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
  /** True: the engine has the model's head that guesses tokens too, for speculation. */
  draftHead?: boolean;
  /** The GGUF of the part that sees, of a model that is a GGUF; default: the one that lies next to it. */
  mmproj?: string;
  /** Threads that convert; default: physical cores, without efficiency cores, within the container's CPU quota. */
  threads?: number;
  onProgress?: (progress: BuildProgress) => void;
  /** Aborts the build, which then removes what it wrote. */
  signal?: AbortSignal;
}

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
  const directory = await buildAside(target, {
    ...options,
    isDurable: true,
    leavesMatrices: false,
    sumsWhenPacked: false,
  });
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

/** The options of a build besides its target. */
export interface BuildAsideOptions extends Omit<BuildOptions, 'outputDirectory'> {
  /**
   * True: waits until the weights are on the disk. If the engine is not kept for good, checksums suffice:
   * what a power cut has left out is found by the next start, which builds the engine again.
   */
  isDurable: boolean;
  /** True: matrices that a GGUF has may stay there (source-placement.ts). False: the engine's folder has all that it needs. */
  leavesMatrices: boolean;
  /**
   * True: packing finds the checksums of matrices that stay in the GGUF (source-checksums-file.ts), and the
   * build does not.
   */
  sumsWhenPacked: boolean;
}

/** Builds into a directory next to `target` and returns its path; the caller publishes or discards it. */
export async function buildAside(target: string, given: BuildAsideOptions): Promise<string> {
  const onProgress = given.onProgress && onlyTold('onProgress', given.onProgress);
  const options = { ...given, ...(onProgress && { onProgress }) };
  const { model, signal } = options;
  const wanted = checkWeightPrecision(options.precision);
  const wantedOutput = checkOutputPrecision(options.outputPrecision ?? 'auto');
  onProgress?.({ phase: 'reading', done: 0, total: 0 });
  const checkpoint = openCheckpoint(model, { wantsHead: options.draftHead, mmproj: options.mmproj });
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
  const weights = await writeWeights({ directory, target }, checkpoint, plan, { ...options, ...precisions });
  await writeTower({ directory, target }, checkpoint, { ...options, ...precisions });
  writeTokenizer(directory, checkpoint);
  const manifest: EngineManifest = { ...describedEngine(checkpoint), ...precisions, ...weights };
  writeFileSync(join(directory, 'engine.json'), `${JSON.stringify(manifest, null, 1)}\n`, { flush: true });
}

/** What engine.json says of a checkpoint, but for its weights. */
export function describedEngine({
  path,
  config,
  format,
  recommended,
  sourceHash,
  leftAside,
  remarks,
}: Checkpoint): Omit<EngineManifest, keyof WrittenWeights | 'precision' | 'outputPrecision'> {
  return {
    skeinVersion: skeinVersion(),
    config,
    maxInputLen: longestSequence(config),
    maxSeqLen: longestSequence(config),
    source: { path: resolve(path), format, hash: sourceHash },
    sampling: recommended(RECOMMENDED_NAMES),
    ...(leftAside.length > 0 && { leftAside }),
    ...(remarks.length > 0 && { remarks }),
  };
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

function writeTokenizer(directory: string, { tokenizer }: Checkpoint): void {
  const texts = tokenizerTexts(tokenizer);
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text);
  const tables = makeTablesFile(texts['tokenizer.json']!);
  if (tables !== null) writeFileSync(join(directory, TABLES_FILE_NAME), tables);
}

/** Texts of the tokenizer's files in an engine directory, by the names of these. */
export function tokenizerTexts(tokenizer: TokenizerFiles): Record<string, string> {
  // Several templates stand in the configuration: one in a file of its own would replace them all.
  const named = configuredList(tokenizer);
  const config = { ...tokenizer.tokenizerConfig, ...(named && { chat_template: named }) };
  const { chatTemplate } = tokenizer;
  return {
    'tokenizer.json': JSON.stringify(tokenizer.tokenizerJson),
    'tokenizer_config.json': JSON.stringify(config),
    ...(named === null && chatTemplate !== null && { 'chat_template.jinja': chatTemplate }),
  };
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
