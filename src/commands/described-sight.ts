import { EngineError, layOutWeights } from '../../engine/building/engine.js';
import { openTowerEngine, towerPictures, towerPrecision } from '../../engine/building/tower-engine.js';
import type { EnginePrecision } from '../../engine/directory/engine-directory.js';
import { CheckpointError, type PartLeftAside } from '../../models/checkpoints/checkpoint.js';
import { readPictureFiles } from '../../models/images/picture-files.js';
import { planTower } from '../../models/towers/index.js';
import { isOfTower, openTower } from '../../models/towers/open-tower.js';
import { MAX_KEPT_BYTES, PATCH_BYTES } from '../serving/pictures/kept-rows.js';
import { hasSight } from '../serving/pictures/sight-memory.js';

/** What a model sees pictures with. */
export type SightDescription =
  | {
      precision: EnginePrecision;
      /** Bytes of the weights of its tower and of what leads from it to the text model. */
      weightBytes: number;
      /** Most bytes of rows of pictures that are kept. */
      keptBytes: number;
    }
  /** Why the model takes none. */
  | { problem: string };

/** What the model at a path sees with; null: it reads texts alone. */
export function describeSight(
  path: string,
  { isEngine, hiddenSize, weights }: { isEngine: boolean; hiddenSize: number; weights: EnginePrecision },
): SightDescription | null {
  try {
    return isEngine ? ofEngine(path) : ofCheckpoint(path, hiddenSize, weights);
  } catch (error) {
    if (error instanceof EngineError || error instanceof CheckpointError) return { problem: error.message };
    throw error;
  }
}

/** Bytes that a model takes for pictures beside those of its weights and cache. */
export const sightBytes = (sight: SightDescription | null): number =>
  sight === null || 'problem' in sight ? 0 : sight.weightBytes + sight.keptBytes + PATCH_BYTES;

/** Parts of the files that nothing computes: without those that a model sees with. */
export function leftBeside(parts: PartLeftAside[], sight: SightDescription | null): PartLeftAside[] {
  return sight === null || 'problem' in sight ? parts : parts.filter(({ part }) => !isOfTower(part));
}

function ofCheckpoint(path: string, hiddenSize: number, weights: EnginePrecision): SightDescription | null {
  const tower = openTower(path, hiddenSize);
  if (tower === null) return null;
  if (readPictureFiles(path) === null)
    return { problem: `${path}: there is no preprocessor_config.json, so its pictures cannot be prepared.` };
  const precision = towerPrecision(weights);
  const { byteLength } = layOutWeights(planTower(tower.config), precision, precision, () => []);
  return { precision, weightBytes: byteLength, keptBytes: MAX_KEPT_BYTES };
}

function ofEngine(path: string): SightDescription | null {
  if (!hasSight(path)) return null;
  const { precision, loadable } = openTowerEngine(path);
  towerPictures(path);
  const weightBytes = loadable.tensors.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return { precision, weightBytes, keptBytes: MAX_KEPT_BYTES };
}
