import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  discardBuildDirectory,
  makeBuildDirectory,
  publishBuildDirectory,
} from '../../base/build-directory.js';
import { onlyTold } from '../../base/error-reporter.js';
import { defaultCacheDirectory } from '../../base/home-folder.js';
import { ProcessLock } from '../../base/process-lock.js';
import { writeProblem, writeReason } from '../../base/system-problem.js';
import { defaultThreads } from '../../base/topology.js';
import { RECOMMENDED_NAMES } from '../../callbacks/sampling-params.js';
import { withoutPartNumber } from '../../models/checkpoints/gguf-parts.js';
import { findModelFiles, type ModelFiles } from '../../models/checkpoints/model-files.js';
import { readRecommendedSampling } from '../../models/checkpoints/open-checkpoint.js';
import { sourceHash } from '../../models/checkpoints/source-hash.js';
import { BUILD_RULES_VERSION, ENGINE_FORMAT_VERSION, replaceFile } from '../directory/engine-directory.js';
import { keepChecksums, lacksChecksum } from '../directory/source-checksums-file.js';
import { hasSourceChanged, loadableTensors, placedAt } from '../directory/source-tensors.js';
import { sourceChecksum } from '../executors/source-checksum.js';
import type { BuildOptions } from './builder.js';
import { type Engine, EngineError, openEngine } from './engine.js';
import { checkOutputPrecision, checkWeightPrecision } from './weight-precision.js';
import { weightsDamage } from './weights-checksum.js';

export interface CachedEngineOptions extends Omit<BuildOptions, 'outputDirectory'> {
  /** Default: SKEIN_CACHE_DIR, else skein in XDG_CACHE_HOME, else ~/.cache/skein. */
  cacheDirectory?: string;
  /**
   * Most bytes of the cache; default 50 GiB. After a build the engines used longest ago are removed until it is no
   * larger.
   */
  maxCacheBytes?: number;
  /** The executor that will run the engine: only native, the default, reads matrices out of packed files. */
  executor?: string | undefined;
  /**
   * 'when packed': checksums of matrices that stay in a GGUF may be missing until the native executor of one rank packs them, which
   * spares a first start a pass over the file. Default 'now': the engine has them, so that ranks can compare their weights.
   */
  checksums?: 'now' | 'when packed';
  /** Called with a message when an engine's weights have changed on the disk and it is built again. */
  onDamaged?: (message: string) => void;
}

const DEFAULT_MAX_CACHE_BYTES = 50 * 1024 ** 3;

const USED_MARK = 'engine.json'; // its modification time is the time of the last use
const LOCK_POLL_MS = 100;
/** A file that is being written is never left alone for so long. */
const ABANDONED_AFTER_MS = 10 * 60 * 1000;

/**
 * Returns a model's engine from the user's cache; builds it there first if it is missing, incomplete or of another
 * version. Several processes may ask at once: one builds, the others wait for it. If two should build all the same, the
 * first to finish wins and the other's work is discarded, because an engine appears by one rename.
 */
export async function cachedEngine(options: CachedEngineOptions): Promise<Engine> {
  const engine = await foundOrBuilt(options);
  // An entry of an earlier version does not say it; the model's own files do.
  engine.manifest.sampling ??= readRecommendedSampling(RECOMMENDED_NAMES, findModelFiles(options.model));
  return engine;
}

async function foundOrBuilt(options: CachedEngineOptions): Promise<Engine> {
  const directory = resolve(options.cacheDirectory ?? defaultCacheDirectory());
  const files = findModelFiles(options.model, options.mmproj);
  // 'auto' stays a name of its own: the engine records what it means for this model, so a start need not open the model.
  const precision = checkWeightPrecision(options.precision);
  const outputPrecision = checkOutputPrecision(options.outputPrecision ?? 'auto');
  const kind = { precision, outputPrecision, draftHead: options.draftHead ?? false };
  const entry = join(directory, entryName(files, kind));
  const found = { entry, file: resolve(files.weights[0]!) };
  const present = await tryOpenWhole(found, options.executor, options.onDamaged);
  if (present) return touched(await withChecksumsNow(present, options));

  const lock = await lockOf(found, options);
  try {
    const built = await tryOpenWhole(found, options.executor);
    if (built) return touched(await withChecksumsNow(built, options));
    await buildInto(found, {
      ...options,
      precision,
      outputPrecision,
      onProgress: heartbeat(lock, options.onProgress),
    });
  } finally {
    lock?.release();
  }
  const engine = openEngine(entry);
  pruneCache(directory, options.maxCacheBytes ?? DEFAULT_MAX_CACHE_BYTES, entry);
  return engine;
}

/** What an engine is made with. */
type EngineParts = Required<Pick<BuildOptions, 'precision' | 'outputPrecision' | 'draftHead'>>;

/** Name of a cache entry: readable, and different for each model, precision and version, with the head that guesses tokens or without. */
function entryName(
  files: ModelFiles,
  { precision, outputPrecision, draftHead }: Readonly<EngineParts>,
): string {
  const both = outputPrecision === 'auto' ? precision : `${precision}-${outputPrecision}`;
  const precisions = draftHead ? `${both}-mtp` : both;
  const name = withoutPartNumber(basename(resolve(files.path)))
    .replace(/\.gguf$/i, '')
    .replace(/[^\w.-]+/g, '-')
    .slice(0, 60);
  const version = `${ENGINE_FORMAT_VERSION}.${BUILD_RULES_VERSION}`;
  const key = createHash('sha256').update(`${sourceHash(files)}\0${precisions}\0${version}`);
  return `${name}-${precisions}-v${version}-${key.digest('hex').slice(0, 20)}`;
}

/** An entry of the cache, and the file of the model's weights (the first of several) where it is now. */
interface Entry {
  entry: string;
  file: string;
}

/** Opens the entry; null if it is missing or unusable, so that it must be built again. */
function tryOpen({ entry, file }: Entry): Engine | null {
  if (!existsSync(entry)) return null;
  try {
    return withPresentFile(openEngine(entry), file);
  } catch (error) {
    if (error instanceof EngineError) return null;
    throw error;
  }
}

/** Lets an engine whose matrices lie in the model's file find that file after it was moved: the entry's name says that it is the same. */
function withPresentFile(engine: Engine, file: string): Engine {
  const { sourceFile } = engine.manifest;
  if (sourceFile === undefined || sourceFile.path === file) return engine;
  const manifest = { ...engine.manifest, sourceFile: placedAt(sourceFile, file) };
  const present = { ...engine, manifest };
  if (sourceFile.otherPaths?.includes(file)) return present;
  // In a cache that cannot be written to, packed files go on to serve; who has to read the old file says that it is not there.
  const isKept = replaceFile(join(engine.directory, 'engine.json'), `${JSON.stringify(manifest, null, 1)}\n`);
  return isKept ? present : engine;
}

/** Like tryOpen, but also removes an entry whose weights have changed, so that no other process takes it meanwhile. */
async function tryOpenWhole(
  found: Entry,
  executor?: string,
  onDamaged?: (message: string) => void,
): Promise<Engine | null> {
  const engine = tryOpen(found);
  if (engine === null) return null;
  const damage = await weightsDamage(engine, executor);
  if (damage === null) return engine;
  try {
    rmSync(found.entry, { recursive: true, force: true }); // processes that have it mapped keep its pages
  } catch (error) {
    const why = writeReason(error);
    throw new EngineError(
      `${damage}; the engine cannot be built again, since ${found.entry} cannot be removed (${why}); set SKEIN_CACHE_DIR or --cache-dir to a folder that can be written.`,
      { cause: error },
    );
  }
  onDamaged?.(`${damage}; it is built again.`);
  return null;
}

/** Finds the checksums that are still missing, where they are wanted now. */
async function withChecksumsNow(engine: Engine, options: CachedEngineOptions): Promise<Engine> {
  const { directory, manifest } = engine;
  if (options.checksums === 'when packed' || !manifest.tensors.some(lacksChecksum)) return engine;
  const tensors = loadableTensors(manifest);
  const missing = tensors.flatMap((tensor, index) => (lacksChecksum(tensor) ? [{ tensor, index }] : []));
  const total = missing.reduce((sum, { tensor }) => sum + tensor.byteLength, 0);
  const found = tensors.flatMap(({ checksum }, tensor) =>
    checksum === undefined ? [] : [{ tensor, checksum }],
  );
  let done = 0;
  for (const { tensor, index } of missing) {
    options.onProgress?.({ phase: 'summing', done, total });
    found.push({
      tensor: index,
      checksum: await sourceChecksum(tensor.jobs!, options.threads ?? defaultThreads()),
    });
    options.signal?.throwIfAborted();
    done += tensor.byteLength;
  }
  if (hasSourceChanged(tensors)) throw changedMeanwhile(manifest.sourceFile!.path);
  keepChecksums(directory, tensors, found);
  options.onProgress?.({ phase: 'finishing', done, total });
  return openEngine(directory);
}

const changedMeanwhile = (file: string) =>
  new EngineError(
    `${file} has changed while an engine was made of it: what was made is thrown away; start again.`,
  );

function touched(engine: Engine): Engine {
  try {
    removeAbandoned(engine.directory);
    const now = new Date();
    utimesSync(join(engine.directory, USED_MARK), now, now);
  } catch {
    // A cache that cannot be written to still serves; only its order of use is not kept.
  }
  return engine;
}

/** Removes what processes that were killed had begun to write, such as panels as large as the model. */
function removeAbandoned(directory: string): void {
  for (const name of namesIn(directory)) {
    const path = join(directory, name);
    const writtenMs = name.endsWith('.tmp') ? statSync(path, { throwIfNoEntry: false })?.mtimeMs : undefined;
    if (writtenMs !== undefined && Date.now() - writtenMs > ABANDONED_AFTER_MS) rmSync(path, { force: true });
  }
}

async function buildInto(
  found: Entry,
  options: Omit<BuildOptions, 'outputDirectory'> & Pick<CachedEngineOptions, 'checksums'>,
): Promise<void> {
  const { entry } = found;
  // Imported here because most starts find an engine and need nothing that builds one.
  const { buildAside } = await import('./builder.js');
  const directory = await buildAside(entry, {
    ...options,
    isDurable: false,
    leavesMatrices: true,
    sumsWhenPacked: options.checksums === 'when packed',
  });
  // Its name says what it was made of, and packing opens the file again later.
  const { model, mmproj, precision, outputPrecision = 'auto', draftHead = false } = options;
  if (
    entryName(findModelFiles(model, mmproj), { precision, outputPrecision, draftHead }) !== basename(entry)
  ) {
    discardBuildDirectory(directory);
    throw changedMeanwhile(found.file);
  }
  try {
    for (let attempt = 0; !publishBuildDirectory(directory, entry); attempt++) {
      if (tryOpen(found) || attempt === 3) {
        discardBuildDirectory(directory); // another process was faster
        return;
      }
      rmSync(entry, { recursive: true, force: true });
    }
  } catch (error) {
    discardBuildDirectory(directory);
    throw new EngineError(`${entry}: cannot be written: ${writeProblem(error)}`, {
      cause: error,
    });
  }
}

/**
 * Takes the lock that saves several processes from building the same engine; correctness never depends on it. Null if
 * another process has built the entry meanwhile.
 */
async function lockOf(found: Entry, options: CachedEngineOptions): Promise<ProcessLock | null> {
  const { entry } = found;
  discardBuildDirectory(makeProbe(entry));
  for (;;) {
    const lock = takeLock(`${entry}.lock`);
    if (lock !== null) return lock;
    if (tryOpen(found)) return null;
    if (options.onProgress) {
      onlyTold('onProgress', options.onProgress)({ phase: 'waiting', done: 0, total: 0 });
    }
    await setTimeout(LOCK_POLL_MS, undefined, options.signal ? { signal: options.signal } : {});
  }
}

function takeLock(path: string): ProcessLock | null {
  try {
    return ProcessLock.tryTake(path);
  } catch (error) {
    throw new EngineError(`${path}: cannot be written: ${writeProblem(error)}`, {
      cause: error,
    });
  }
}

function heartbeat(
  lock: ProcessLock | null,
  onProgress: BuildOptions['onProgress'],
): NonNullable<BuildOptions['onProgress']> {
  return (progress) => {
    lock?.touch();
    onProgress?.(progress);
  };
}

/** Makes a directory in the cache, to fail at once, naming the cache, if it cannot be written to. */
function makeProbe(entry: string): string {
  try {
    return makeBuildDirectory(entry);
  } catch (error) {
    throw new EngineError(
      `${entry}: the engine is not in the cache yet and the cache cannot be written (${writeReason(error)}); set SKEIN_CACHE_DIR or --cache-dir to a folder that can, or build the engine with "skein build".`,
      { cause: error },
    );
  }
}

/** Removes the engines used longest ago until the cache takes at most `maxBytes`; `keep` stays. Returns their paths. */
export function pruneCache(directory: string, maxBytes: number, keep: string | null = null): string[] {
  const entries = readdirSync(directory)
    .map((name) => join(directory, name))
    .filter((path) => existsSync(join(path, 'engine.json')) && !basename(path).startsWith('.'))
    .map((path) => ({ path, bytes: bytesOf(path), usedAt: statSync(join(path, USED_MARK)).mtimeMs }))
    .sort((a, b) => a.usedAt - b.usedAt);
  let total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const removed: string[] = [];
  for (const { path, bytes } of entries) {
    if (total <= maxBytes) break;
    if (path === keep) continue;
    rmSync(path, { recursive: true, force: true }); // processes that have it mapped keep its pages
    removed.push(path);
    total -= bytes;
  }
  return removed;
}

/** Files of an engine, those of its tower among them. */
const namesIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' });

function bytesOf(directory: string): number {
  return namesIn(directory).reduce(
    (sum, name) => sum + (statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}
