import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { CheckpointError } from '../../models/checkpoints/checkpoint.js';
import type { PictureFiles } from '../../models/images/preprocess/picture-preprocessor.js';
import type { TextCheckpoint } from '../../models/towers/gguf/open-gguf-tower.js';
import { whyBlind } from '../../models/towers/gguf/why-blind.js';
import { planTower } from '../../models/towers/index.js';
import { openTower, type TowerCheckpoint } from '../../models/towers/open-tower.js';
import type { TowerConfig } from '../../models/towers/tower-config.js';
import type { NetworkPlan } from '../../network/plan.js';
import { type EngineManifest, type EnginePrecision, towerFolder } from '../directory/engine-directory.js';
import type { LoadableEngine } from '../executors/executor-kind.js';
import { modelName } from '../ranks/model-name.js';
import type { BuildAsideOptions } from './builder.js';
import { checkLength, checkTensors, EngineError, readManifestText } from './engine.js';
import { writeWeights } from './weights-writer.js';

/**
 * The part of an engine that sees, in a folder of its own:
 *
 *   tower/tower.json    TowerManifest, or why pictures are not supported
 *   tower/weights.bin   as that of the engine
 *   tower/pictures.json PictureFiles: how pictures are prepared; absent: the checkpoint does not say
 */
const TOWER_FILE = 'tower.json';
const PICTURES_FILE = 'pictures.json';
const TOWER_FORMAT_VERSION = 1;

type WeightFacts = Pick<EngineManifest, 'precision' | 'outputPrecision' | 'weightsByteLength' | 'tensors'>;

interface TowerManifest extends WeightFacts {
  towerVersion: number;
  config: TowerConfig;
}

/** Written in place of a manifest. */
interface Refusal {
  towerVersion: number;
  /** Sentence on why pictures are not supported. */
  refusal: string;
}

/** A tower, opened and checked; its weights are only ever touched by native code. */
export interface TowerEngine {
  config: TowerConfig;
  precision: EnginePrecision;
  loadable: LoadableEngine;
}

/**
 * Writes the part that sees into an engine's folder, or why there is none: a model whose pictures are not supported runs as a text model.
 * Weights are f32 where the engine's are, else bf16: a tower is small compared with its text model.
 *
 * @param directory the engine's folder, which becomes `target`
 */
export async function writeTower(
  { directory, target }: { directory: string; target: string },
  text: TextCheckpoint,
  options: BuildAsideOptions & { precision: EnginePrecision },
): Promise<void> {
  const tower = opened(text, options.mmproj !== undefined);
  if (tower === null) return;
  const folder = towerFolder(directory);
  mkdirSync(folder);
  const written: TowerManifest | Refusal =
    typeof tower === 'string'
      ? { towerVersion: TOWER_FORMAT_VERSION, refusal: tower }
      : await writeWhole({ directory: folder, target }, tower, options);
  const write = (name: string, value: unknown) =>
    writeFileSync(join(folder, name), `${JSON.stringify(value, null, 1)}\n`, { flush: true });
  const pictures = typeof tower === 'string' ? null : tower.pictures;
  if (pictures !== null) write(PICTURES_FILE, pictures);
  write(TOWER_FILE, written);
}

/** Precision of a tower's weights, by that of its engine's. */
export const towerPrecision = (ofEngine: EnginePrecision) => (ofEngine === 'f32' ? 'f32' : 'bf16');

/** How pictures are prepared for an engine's part that sees. @throws EngineError where its checkpoint did not say */
export function towerPictures(enginePath: string): PictureFiles {
  const file = join(towerFolder(enginePath), PICTURES_FILE);
  if (statSync(file, { throwIfNoEntry: false }) === undefined)
    throw new EngineError(
      `${enginePath}: the model's folder had no preprocessor_config.json when it was built, so its pictures cannot be prepared.`,
    );
  return readManifestText(file) as PictureFiles;
}

/** The part of a checkpoint that sees; null: there is none; or why it is not supported. @throws CheckpointError where one was named */
function opened(text: TextCheckpoint, isNamed: boolean): TowerCheckpoint | string | null {
  try {
    return openTower(text) ?? whyBlind(text);
  } catch (error) {
    if (error instanceof CheckpointError && !isNamed) return error.message;
    throw error;
  }
}

async function writeWhole(
  place: { directory: string; target: string },
  tower: TowerCheckpoint,
  options: BuildAsideOptions & { precision: EnginePrecision },
): Promise<TowerManifest> {
  const precision = towerPrecision(options.precision);
  const precisions = { precision, outputPrecision: precision } as const;
  const own = { ...options, ...precisions, leavesMatrices: false };
  const { weightsByteLength, tensors } = await writeWeights(place, tower, planTower(tower.config), own);
  return {
    towerVersion: TOWER_FORMAT_VERSION,
    ...precisions,
    config: tower.config,
    weightsByteLength,
    tensors,
  };
}

/** Opens the part of an engine that sees. @throws EngineError where it has none, or one that is not supported, damaged or of another version */
export function openTowerEngine(enginePath: string): TowerEngine {
  const folder = towerFolder(enginePath);
  const file = join(folder, TOWER_FILE);
  if (statSync(file, { throwIfNoEntry: false }) === undefined)
    throw new EngineError(`${enginePath}: this model reads texts alone; it sees no pictures.`);
  const found = readManifestText(file) as Partial<TowerManifest & Refusal> | null;
  if (found?.towerVersion !== TOWER_FORMAT_VERSION)
    throw new EngineError(
      `${file}: has version ${found?.towerVersion}, expected ${TOWER_FORMAT_VERSION}; build the engine again.`,
    );
  if (typeof found.refusal === 'string') throw new EngineError(found.refusal);
  const manifest = found as TowerManifest;
  const plan = planOf(file, manifest);
  const weightsFile = join(folder, 'weights.bin');
  checkTensors(weightsFile, manifest, plan);
  checkLength(weightsFile, manifest.weightsByteLength);
  const { tensors, config, precision } = manifest;
  return { config, precision, loadable: { plan, weightsFile, tensors, packedFolder: folder } };
}

/** Precisions of towers. */
const PRECISIONS: readonly EnginePrecision[] = ['f32', 'bf16'];

function planOf(file: string, { config, tensors, precision, outputPrecision }: TowerManifest): NetworkPlan {
  // Each layer has tensors of its own, so a plan is never longer than the list in its file.
  const isBounded = Array.isArray(tensors) && config?.numLayers <= tensors.length;
  const isKnown = PRECISIONS.includes(precision) && precision === outputPrecision;
  if (!isBounded || !isKnown) throw new EngineError(`${file}: is not a complete tower.json.`);
  try {
    return planTower(config);
  } catch (error) {
    throw new EngineError(`${file}: its configuration makes no network: ${asSentence(messageOf(error))}`);
  }
}

/** Digest of a tower's configuration and weights in their precision: the same on every machine. */
export function towerDigest({ config, loadable }: Pick<TowerEngine, 'config' | 'loadable'>): string {
  const { plan, tensors } = loadable;
  const weights = modelName({ plan, tensors });
  return createHash('sha256')
    .update(JSON.stringify([config, weights]))
    .digest('hex');
}
