import { setImmediate as nextTurn } from 'node:timers/promises';
import { joinedFloats } from '../../../base/joined-arrays.js';
import type { TowerHost } from '../../../host/tower-host.js';
import {
  type PicturePlan,
  type PicturePreprocessor,
  patchCount,
} from '../../../models/images/preprocess/picture-preprocessor.js';
import type { Pixels } from '../../../models/images/resize.js';
import { KeptRows, PATCH_BYTES } from './kept-rows.js';
import { PatchMemory } from './patch-memory.js';
import type { PictureFacts, PlannedPicture } from './picture-reader.js';

/** What makes rows of pictures. */
export interface RowParts {
  preprocessor: Pick<PicturePreprocessor, 'patchesInTurns'>;
  /** Opened with the first picture. */
  tower: () => Pick<TowerHost, 'see'>;
  /** Most bytes of rows that are kept. */
  maxKeptBytes: number;
}

/** Makes a picture's rows of its tiles. */
export type See = (tiles: readonly Pixels[]) => Promise<Float32Array>;

/** Most pictures that wait to be seen: those of the requests that may wait. */
const MAX_WAITING = 4096;

/** Rows that a model's tower makes of pictures, together with those of other requests, or that are kept. */
export class PictureRows {
  readonly #parts: RowParts;
  readonly #kept: KeptRows;
  readonly #patches = new PatchMemory(PATCH_BYTES, MAX_WAITING);

  constructor(parts: RowParts) {
    this.#parts = parts;
    this.#kept = new KeptRows(parts.maxKeptBytes);
  }

  /** Pictures whose rows the tower made, and those whose rows were kept. */
  get counts(): Readonly<KeptRows['counts']> {
    return this.#kept.counts;
  }

  /**
   * Rows of a picture: those that are kept, or what `make` has the tower see. One who leaves does not end the work that others wait for.
   * @param salt only pictures of the same one share rows
   */
  of(
    { digest, plan }: Pick<PictureFacts, 'digest'> & Pick<PlannedPicture, 'plan'>,
    salt: bigint,
    make: (see: See) => Promise<Float32Array>,
  ): Promise<Float32Array> {
    const key = `${salt} ${Buffer.from(digest).toString('hex')}`;
    return this.#kept.of(key, () => make((tiles) => this.#see(tiles, plan)));
  }

  /**
   * Pictures take turns, so that their patches are not all in memory at a time, and other requests need not
   * wait until they are made.
   */
  async #see(tiles: readonly Pixels[], plan: PicturePlan): Promise<Float32Array> {
    const { floats, giveBack } = await this.#patches.take(patchBytes(plan));
    try {
      const { preprocessor } = this.#parts;
      const pictures = [];
      let end = 0;
      for (const [i, grid] of plan.grids.entries()) {
        const begin = end;
        end += patchCount(grid) * plan.rowWidth;
        const patches = floats.subarray(begin, end);
        await preprocessor.patchesInTurns(tiles[i]!, patches, nextTurn);
        pictures.push({ patches, grid });
      }
      return joinedFloats(await this.#parts.tower().see(pictures));
    } finally {
      giveBack();
    }
  }
}

const patchBytes = ({ grids, rowWidth }: PicturePlan): number =>
  grids.reduce((sum, grid) => sum + patchCount(grid), 0) * rowWidth * Float32Array.BYTES_PER_ELEMENT;
