import { EngineError, layOutWeights } from '../../engine/building/engine.js';
import { openTowerEngine, towerPictures, towerPrecision } from '../../engine/building/tower-engine.js';
import type { EnginePrecision } from '../../engine/directory/engine-directory.js';
import { CheckpointError, type PartLeftAside } from '../../models/checkpoints/checkpoint.js';
import type { TextCheckpoint } from '../../models/towers/gguf/open-gguf-tower.js';
import { whyBlind } from '../../models/towers/gguf/why-blind.js';
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

/**
 * What a model sees with; null: it reads texts alone.
 *
 * @param model its checkpoint, or the path of its engine directory
 * @param weights precision of the text model's weights
 * @param isNamed whether the file of its tower was named
 * @throws CheckpointError where a file was named that cannot be read
 */
export function describeSight(
  model: TextCheckpoint | string,
  weights: EnginePrecision,
  isNamed = false,
): SightDescription | null {
  try {
    return typeof model === 'string' ? ofEngine(model) : ofCheckpoint(model, weights);
  } catch (error) {
    const isKnown = error instanceof EngineError || error instanceof CheckpointError;
    if (isKnown && !isNamed) return { problem: error.message };
    throw error;
  }
}

/** Bytes that a model takes for pictures in addition to those of its weights and cache. */
export const sightBytes = (sight: SightDescription | null): number =>
  sight === null || 'problem' in sight ? 0 : sight.weightBytes + sight.keptBytes + PATCH_BYTES;

/** Parts of the files that nothing computes: without those that a model sees with. */
export function leftBeside(parts: PartLeftAside[], sight: SightDescription | null): PartLeftAside[] {
  return sight === null || 'problem' in sight ? parts : parts.filter(({ part }) => !isOfTower(part));
}

function ofCheckpoint(text: TextCheckpoint, weights: EnginePrecision): SightDescription | null {
  const tower = openTower(text);
  const why = tower === null ? whyBlind(text) : null;
  if (tower === null) return why === null ? null : { problem: why };
  if (tower.pictures === null)
    return {
      problem: `${text.path}: there is no preprocessor_config.json, so its pictures cannot be prepared.`,
    };
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
