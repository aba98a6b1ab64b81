import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onlyTold } from '../../base/error-reporter.js';
import { type NamedText, option, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { type Engine, openEngine } from '../../engine/building/engine.js';
import { type CachedEngineOptions, cachedEngine } from '../../engine/building/engine-cache.js';
import { engineToLoad } from '../../engine/building/engine-to-load.js';
import { checkWeights } from '../../engine/building/weights-checksum.js';
import { type ExecutorWish, likelyExecutor } from '../../engine/kinds/choose-executor.js';
import { localModel } from '../hub/local-model.js';
import type { ModelOptions } from './model-options.js';

/** The engines of a model and its draft model, found in the cache or built. */
export interface FoundEngines {
  engine: Engine;
  draft: Engine | null;
}

/**
 * Builds the engine, and that of the draft model, if they are not in the cache.
 *
 * @param isRank true for a rank that joins the ranks of another machine, which compare their weights
 * @throws as loadModel
 */
export async function findEngines(options: ModelOptions, isRank = false): Promise<FoundEngines> {
  // A model that nothing here can run is neither downloaded nor built.
  if (options.executorModule === undefined) await likelyExecutor(executorWish(options));
  const engine = await engineOf(options, isRank);
  const { draftModel } = options;
  const draft =
    draftModel === undefined
      ? null
      : await engineOf(
          { ...options, model: draftModel, revision: undefined, mmproj: undefined, speculate: undefined },
          isRank,
        );
  performance.mark('skein: engine found');
  return { engine, draft };
}

function executorWish({ kvCacheDtype, microBatchOverlap, adapters, ...options }: ModelOptions): ExecutorWish {
  const kvDtype = kvCacheDtype === 'auto' ? undefined : kvCacheDtype;
  // Without any it may be an encoder, which needs no room for them.
  const peftCacheManagerConfig = Object.keys(adapters ?? {}).length === 0 ? undefined : {};
  return { ...options, kvDtype, enableTrtOverlap: microBatchOverlap, peftCacheManagerConfig };
}

async function engineOf(options: ModelOptions, isRank: boolean): Promise<Engine> {
  const { revision, signal } = options;
  const onDownload = options.onDownload && onlyTold('onDownload', options.onDownload);
  const model = await localModel(options.model, { revision, onProgress: onDownload, signal });
  if (options.panels === false) {
    checkStored(options);
    refuseMmproj(options, says`without ${option('panels')} a model reads texts alone`);
    return engineToLoad(model, false);
  }
  if (existsSync(join(model, 'engine.json'))) {
    refuseMmproj(options, 'an engine directory has its own');
    const engine = openEngine(model);
    await checkWeights(engine, options.executor);
    return engine;
  }
  const cached: CachedEngineOptions = {
    model,
    precision: options.weights ?? 'auto',
    executor: options.executor,
    checksums: packsWhole(options, isRank) ? 'when packed' : 'now',
  };
  if (options.outputWeights !== undefined) cached.outputPrecision = options.outputWeights;
  if (options.speculate === 'mtp') cached.draftHead = true;
  if (options.mmproj !== undefined) cached.mmproj = options.mmproj;
  if (options.cacheDir !== undefined) cached.cacheDirectory = options.cacheDir;
  if (options.threads !== undefined) cached.threads = options.threads;
  if (options.onProgress !== undefined) cached.onProgress = options.onProgress;
  if (options.signal !== undefined) cached.signal = options.signal;
  const warn = (message: string) =>
    process.emitWarning(message, {
      type: 'SkeinWarning',
      code: 'SKEIN_ENGINE_DAMAGED',
    });
  cached.onDamaged = options.onDamaged === undefined ? warn : onlyTold('onDamaged', options.onDamaged);
  return cachedEngine(cached);
}

/** @throws ParameterError where a tower's file is named that is not read */
function refuseMmproj({ mmproj }: ModelOptions, why: NamedText): void {
  if (mmproj === undefined) return;
  throw new ParameterError('mmproj', says`${option('mmproj')} is ${mmproj}, and ${why}; leave it out.`);
}

/** @throws ParameterError where options ask for other weights than those of the file, or for an executor that packs its own */
function checkStored({ weights = 'auto', outputWeights = 'auto', executorModule }: ModelOptions): void {
  const other = (['weights', 'outputWeights'] as const).find((name) => {
    const given = name === 'weights' ? weights : outputWeights;
    return given !== 'auto' && given !== 'stored';
  });
  if (other !== undefined) {
    throw new ParameterError(
      other,
      says`${option(other)} is ${other === 'weights' ? weights : outputWeights}, but without ${option('panels')} the model has the numbers of its file: leave it out, or give stored.`,
    );
  }
  if (executorModule !== undefined) {
    throw new ParameterError(
      'panels',
      says`${option('panels')} is of the native executor, and ${option('executorModule')} names another.`,
    );
  }
}

/** True if one native executor runs the model, which reads all of a GGUF's matrices when it packs them. */
function packsWhole({ executor, executorModule, ...sizes }: ModelOptions, isRank: boolean): boolean {
  const { tensorParallelSize = 1, pipelineParallelSize = 1 } = sizes;
  const isNative = executor === undefined || executor === 'auto' || executor === 'native';
  return (
    isNative && executorModule === undefined && !isRank && tensorParallelSize * pipelineParallelSize === 1
  );
}
