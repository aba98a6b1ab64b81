import { option, says } from '../../base/named-text.js';
import { retell, textOf } from '../../base/skein-error.js';
import { type MemoryNeeds, splitMemory } from '../../engine/worker/memory-split.js';
import { type AvailableMemory, availableMemory } from '../../kvcache/available-memory.js';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { type FoundEngines, findEngines } from './find-engines.js';
import { loadRequest } from './host-options.js';
import { startModel } from './load-model.js';
import type { ModelOptions } from './model-options.js';
import { hasSight, withSight } from './pictures/sight-memory.js';
import type { RunningModel } from './running-model.js';

/** One of several models in a process. */
export interface NamedModel {
  name: string;
  options: ModelOptions;
  /** Memory for its KV cache; absent: what is free, or its share of that. */
  memory?: AvailableMemory | undefined;
}

/**
 * Loads models that run side by side: builds missing engines one after the other, splits the memory for KV
 * caches, and starts all. If one cannot be loaded, none is.
 * @throws as loadModel, with the model's name in front where there are several.
 */
export async function loadModels(models: readonly NamedModel[]): Promise<RunningModel[]> {
  const of = <T>(index: number, work: () => T | Promise<T>) =>
    models.length === 1 ? work() : named(models[index]!.name, work);
  const engines: FoundEngines[] = [];
  for (const [index, { options }] of models.entries())
    engines.push(await of(index, () => findEngines(options)));
  // A model alone measures the memory by itself, but for what it sees with.
  const isPlain = models.length <= 1 && !engines.some(({ engine }) => hasSight(engine.directory));
  const shares = isPlain ? [] : await sharesOf(models, engines, of);
  const starting = models.map(({ options, memory }, index) =>
    of(index, () => startFound(options, engines[index]!, memory ?? shares[index])),
  );
  const results = await Promise.allSettled(starting);
  const failed = results.find((result) => result.status === 'rejected');
  const loaded = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (failed === undefined) return loaded;
  await Promise.all(loaded.map((model) => model.close({ abort: true })));
  throw failed.reason;
}

/**
 * Shares of memory for the models; none where one has an executor of its own, whose needs are unknown: each engine then
 * measures the memory itself.
 */
async function sharesOf(
  models: readonly NamedModel[],
  engines: readonly FoundEngines[],
  of: <T>(index: number, work: () => T | Promise<T>) => T | Promise<T>,
): Promise<AvailableMemory[]> {
  if (models.some(({ options }) => options.executorModule !== undefined)) return [];
  const available = availableMemory();
  const needs: MemoryNeeds[] = [];
  for (const [index, { options }] of models.entries())
    needs.push(await of(index, () => needsOf(options, engines[index]!)));
  return splitMemory(available, needs);
}

/** Memory that a model of either kind needs, whose engine is built. */
export async function needsOf(options: ModelOptions, engines: FoundEngines): Promise<MemoryNeeds> {
  const { engine } = engines;
  if (engine.manifest.config.encoder !== undefined) return encoderNeeds(options, engine.directory);
  const { memoryNeeds } = await import('../../engine/worker/load-executor.js');
  const needs = await memoryNeeds(loadRequest(options, engines));
  return { ...needs, fixed: await withSight(needs.fixed, options, engine.directory) };
}

/** Starts a model of either kind. An encoder has no cache to size. Code for encoders is imported only for them. */
export async function startFound(
  options: ModelOptions,
  engines: FoundEngines,
  memory?: AvailableMemory,
): Promise<RunningModel> {
  if (engines.engine.manifest.config.encoder === undefined) return startModel(options, engines, memory);
  if (Object.keys(options.adapters ?? {}).length > 0) {
    throw new CheckpointError(`${options.model}: an encoder cannot have adapters.`);
  }
  if (options.kvEventsEndpoint !== undefined) {
    throw new CheckpointError(
      says`${options.model}: an encoder has no KV cache, and so nothing for ${option('kvEventsEndpoint')}.`,
    );
  }
  const { startEncoder } = await import('./load-encoder-model.js');
  return startEncoder(options, engines.engine);
}

async function encoderNeeds(options: ModelOptions, enginePath: string): Promise<MemoryNeeds> {
  const { encoderMemoryNeeds } = await import('../../engine/encoder/load-encoder.js');
  const { encoderParams } = await import('./load-encoder-model.js');
  const needs = await encoderMemoryNeeds(enginePath, encoderParams(options));
  return { ...needs, fixed: await withSight(needs.fixed, options, enginePath) };
}

/** Runs work, and puts the model's name in front of its errors. */
async function named<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error) {
      retell(error, says`The model ${name} cannot be loaded: ${textOf(error)}`);
    }
    throw error;
  }
}
