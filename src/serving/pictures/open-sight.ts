import { messageOf } from '../../../base/error-text.js';
import { EngineError } from '../../../engine/building/engine.js';
import { openTowerEngine, towerDigest, towerPictures } from '../../../engine/building/tower-engine.js';
import { type TowerParams, towerLimits } from '../../../engine/tower/load-tower.js';
import { TowerHost } from '../../../host/tower-host.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { attendsBothWays } from '../../../models/images/both-ways.js';
import { PicturePool } from '../../../models/images/picture-pool.js';
import { pictureToken } from '../../../models/images/picture-token.js';
import { pictureRowWidth } from '../../../models/towers/tower-config.js';
import type { TextCodec } from '../../generation/text-model.js';
import { MAX_KEPT_BYTES } from './kept-rows.js';
import { ModelSight } from './model-sight.js';

/** A model's sight while it is loaded. */
export interface OpenSight {
  sight: ModelSight;
  /** Ends its processes and its worker. */
  close(): Promise<void>;
}

export interface SightSource {
  /** The engine's folder. */
  directory: string;
  codec: Pick<TextCodec, 'tokenEntry' | 'specialTexts'>;
  vocabSize: number;
  params: TowerParams;
}

/**
 * Opens what a model sees with; its worker and its processes start with the first picture.
 * @returns why the model takes no pictures, where it has nothing to see with, or something that is not supported
 */
export function openSight({ directory, codec, vocabSize, params }: SightSource): OpenSight | string {
  try {
    const engine = openTowerEngine(directory);
    const files = towerPictures(directory);
    if (attendsBothWays(files)) return BOTH_WAYS;
    const { id: tokenId, placeholder } = pictureToken(files);
    const tokenText = codec.tokenEntry(tokenId);
    const places = placeholder ?? tokenText;
    if (
      tokenText === null ||
      !codec.specialTexts?.includes(tokenText) ||
      !codec.specialTexts.includes(places!)
    )
      return `The tokenizer has no special token for pictures: token ${tokenId} is ${tokenText ?? 'none'}.`;
    const { maxPatches } = towerLimits(engine.config, params).limits;
    const pool = new PicturePool({ ...files, maxPatches });
    let tower: TowerHost | null = null;
    const sight = new ModelSight({
      pool,
      tower: () => (tower ??= new TowerHost({ enginePath: directory, params })),
      towerDigest: towerDigest(engine),
      vocabSize,
      placeholder: places!,
      tokenId,
      tokenText,
      rowBytes: pictureRowWidth(engine.config) * Float32Array.BYTES_PER_ELEMENT,
      maxKeptBytes: MAX_KEPT_BYTES,
    });
    return { sight, close: async () => void (await Promise.all([pool.close(), tower?.close()])) };
  } catch (error) {
    if (error instanceof EngineError || error instanceof CheckpointError)
      return withoutFolder(messageOf(error));
    throw error;
  }
}

const BOTH_WAYS =
  'the text model attends both ways within a picture, as those of Gemma 3 do, which is not supported yet.';

/** A sentence that names a file by itself: clients are told no folders. */
const withoutFolder = (sentence: string) => sentence.replace(/^[^:]*[\\/](?=[^:\\/]+: )/, '');
