import { openTowerEngine, towerPictures } from '../../../engine/building/tower-engine.js';
import type { TowerParams } from '../../../engine/tower/load-tower.js';
import { PicturePool } from '../../../models/images/picture-pool.js';
import { CHANNELS } from '../../../models/images/resize.js';
import { sequenceLength } from '../../../models/towers/picture-places.js';
import type { TowerConfig } from '../../../models/towers/tower-config.js';
import type { EncodedPicture, PictureEncoder } from '../../encoding/picture-encoder.js';
import { MAX_KEPT_BYTES } from './kept-rows.js';
import { LateTower } from './late-tower.js';
import { orReason } from './open-reader.js';
import { requestsError } from './picture-reader.js';
import { PictureRows } from './picture-rows.js';

/** What embeds an encoder's pictures while it is loaded. */
export interface OpenPictureEncoder {
  encoder: PictureEncoder;
  /** Ends its processes and its worker. */
  close(): Promise<void>;
}

/**
 * Opens what an encoder embeds pictures with; its worker and its processes start with the first picture.
 * @param directory the engine's folder
 * @returns why the model takes no pictures, where its files have something to see with that is not supported
 */
export function openPictureEncoder(directory: string, params: TowerParams): OpenPictureEncoder | string {
  return orReason(() => {
    const { config } = openTowerEngine(directory);
    const pool = new PicturePool(towerPictures(directory));
    const tower = new LateTower(directory, params);
    const rows = new PictureRows({
      preprocessor: pool.preprocessor,
      tower: tower.open,
      maxKeptBytes: MAX_KEPT_BYTES,
    });
    const encoder = { look: (file: Uint8Array, place: string) => looked(pool, rows, config, file, place) };
    return { encoder, close: async () => void (await Promise.all([pool.close(), tower.close()])) };
  });
}

/** A picture by the header of its file, whose row is that of its content. */
function looked(
  pool: PicturePool,
  rows: PictureRows,
  config: TowerConfig,
  file: Uint8Array,
  place: string,
): EncodedPicture {
  try {
    const { grids, tiles } = pool.look(file);
    return {
      tokens: grids.reduce((sum, grid) => sum + sequenceLength(config, grid), 0),
      bytes: tiles.reduce((sum, { width, height }) => sum + width * height * CHANNELS, 0),
      decode: async (signal) => {
        const [picture] = await pool.prepare([file], signal).catch((error: unknown) => {
          throw requestsError(place, error);
        });
        const { digest, width, height, tiles: prepared } = picture!;
        const plan = pool.preprocessor.plan(width, height);
        return { row: (salt = 0n) => rows.of({ digest, plan }, salt, (see) => see(prepared)) };
      },
    };
  } catch (error) {
    throw requestsError(place, error);
  }
}
