import { openTowerEngine, towerDigest, towerPictures } from '../../../engine/building/tower-engine.js';
import { type TowerParams, towerLimits } from '../../../engine/tower/load-tower.js';
import { attendsBothWays } from '../../../models/images/both-ways.js';
import type { ModelConfig } from '../../../models/model-config.js';
import { pictureRowWidth } from '../../../models/towers/tower-config.js';
import { MAX_KEPT_BYTES } from './kept-rows.js';
import { LateTower } from './late-tower.js';
import { ModelSight } from './model-sight.js';
import { orReason, type ReaderModel, readerOf } from './open-reader.js';

/** What the result of a model's pictures depends on, besides its files. */
export interface SightFacts {
  /** Digest of the tower, see TowerInfo. */
  tower: string;
  /** Most patches of a picture. */
  maxPatches: number;
}

/** A model's sight while it is loaded. */
export interface OpenSight {
  sight: ModelSight;
  /** What other processes have to know to read its pictures. */
  facts: SightFacts;
  /** Ends its processes and its worker. */
  close(): Promise<void>;
}

export interface SightSource extends ReaderModel {
  /** The engine's folder. */
  directory: string;
  params: TowerParams;
  /** Of the text model. */
  config: Pick<ModelConfig, 'bothWaysInPictures'>;
  /** Name of the executor that runs the text model. */
  executor: string;
}

/**
 * Opens what a model sees with; its worker and its processes start with the first picture.
 * @returns why the model takes no pictures, where it has nothing to see with, or something that is not supported
 */
export function openSight(source: SightSource): OpenSight | string {
  const { directory, codec, vocabSize, params, executor } = source;
  const { bothWaysInPictures } = source.config;
  return orReason(() => {
    const engine = openTowerEngine(directory);
    const digest = towerDigest(engine);
    const files = towerPictures(directory);
    if (attendsBothWays(files)) {
      if (bothWaysInPictures === undefined) return BUILT_BEFORE;
      if (executor === 'tensorflow') return NOT_BOTH_WAYS;
    }
    const { maxPatches } = towerLimits(engine.config, params).limits;
    const opened = readerOf({ ...files, maxPatches }, digest, { codec, vocabSize });
    if (typeof opened === 'string') return opened;
    const tower = new LateTower(directory, params);
    const sight = new ModelSight({
      reader: opened.reader,
      tower: tower.open,
      rowBytes: pictureRowWidth(engine.config) * Float32Array.BYTES_PER_ELEMENT,
      maxKeptBytes: MAX_KEPT_BYTES,
    });
    const close = async () => void (await Promise.all([opened.pool.close(), tower.close()]));
    return { sight, facts: { tower: digest, maxPatches }, close };
  });
}

const BUILT_BEFORE =
  'the text model attends both ways within a picture, and its engine was built by a version that did not know this: build it again.';
const NOT_BOTH_WAYS =
  'the text model attends both ways within a picture, which the native and the wasm executor do, and TensorFlow does not.';
