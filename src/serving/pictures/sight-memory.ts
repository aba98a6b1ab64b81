import { existsSync } from 'node:fs';
import { EngineError } from '../../../engine/building/engine.js';
import { towerFolder } from '../../../engine/directory/engine-directory.js';
import { addMemory, type FixedMemory } from '../../../engine/executors/memory-budget.js';
import type { TowerParams } from '../../../engine/tower/load-tower.js';
import type { ModelOptions } from '../model-options.js';
import { MAX_KEPT_BYTES, PATCH_BYTES } from './kept-rows.js';

/** Whether an engine has a part for pictures: one that sees, or a word on why there is none. */
export const hasSight = (enginePath: string): boolean => existsSync(towerFolder(enginePath));

/** Parameters of the tower's worker, made of the model's options. */
export function towerParams({ executor, threads, computeWeight, pinThreads }: ModelOptions): TowerParams {
  return { executor, threads, computeWeight, pinThreads };
}

/** Adds what an engine's part that sees takes, and the rows and patches of pictures that are there at a time, to the model's memory. Takes none. */
export async function withSight(
  fixed: FixedMemory,
  options: ModelOptions,
  enginePath: string,
): Promise<FixedMemory> {
  if (!hasSight(enginePath)) return fixed;
  const { towerMemoryNeeds } = await import('../../../engine/tower/load-tower.js');
  try {
    const tower = await towerMemoryNeeds(enginePath, towerParams(options));
    const kept = { packedWeights: 0, storedWeights: 0, workspace: MAX_KEPT_BYTES + PATCH_BYTES };
    return addMemory(addMemory(fixed, tower.fixed), kept);
  } catch (error) {
    // A model that sees no pictures, for a reason that the server reports, runs as a text model.
    if (error instanceof EngineError) return fixed;
    throw error;
  }
}
