import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TowerHost } from '../../../host/tower-host.js';
import { ByteBudget } from '../../../models/images/byte-budget.js';
import { PictureError } from '../../../models/images/picture-error.js';
import type { PicturePool } from '../../../models/images/picture-pool.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import { type PicturePlan, patchCount } from '../../../models/images/preprocess/picture-preprocessor.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { KeptRows, PATCH_BYTES } from './kept-rows.js';

/** What pictures go through. */
export interface RowParts {
  pool: PicturePool;
  /** Opened with the first picture. */
  tower: () => Pick<TowerHost, 'see'>;
  /** Most bytes of rows that are kept. */
  maxKeptBytes: number;
}

/** A picture that has been read. */
export interface ReadPicture {
  prepared: PreparedPicture;
  plan: PicturePlan;
  /** What the tower makes of it: rows that are kept, or new ones. */
  rows(): Promise<Float32Array>;
}

/** Most pictures that wait to be seen: those of the requests that may wait. */
const MAX_WAITING = 4096;

/**
 * A model's way from a picture's file to the rows that its tower makes:
 *
 *   file -> header: what becomes of it
 *        -> PicturePool (decoded, resized, in a process of its own) -> digest of its content
 *        -> rows that are kept, or patches -> TowerHost (with pictures of other requests) -> rows
 */
export class PictureRows {
  readonly #parts: RowParts;
  readonly #kept: KeptRows;
  readonly #patches = new ByteBudget(PATCH_BYTES, MAX_WAITING);

  constructor(parts: RowParts) {
    this.#parts = parts;
    this.#kept = new KeptRows(parts.maxKeptBytes);
  }

  /** What a file's picture becomes, by its header. @param place where it stands in the request @throws InvalidRequestError */
  look(file: Uint8Array, place: string): PicturePlan {
    try {
      return this.#parts.pool.look(file);
    } catch (error) {
      throw requestsError(place, error);
    }
  }

  /** @param place where the file stands in the request @throws InvalidRequestError, PicturesBusyError, PictureDecoderError; the signal's reason */
  async read(file: Uint8Array, place: string, signal: AbortSignal | undefined): Promise<ReadPicture> {
    const { pool } = this.#parts;
    const [picture] = await pool.prepare([file], signal).catch((error: unknown) => {
      throw requestsError(place, error);
    });
    const prepared = picture!;
    const plan = pool.preprocessor.plan(prepared.width, prepared.height);
    const key = Buffer.from(prepared.digest).toString('hex');
    // One who leaves does not end the work that others wait for.
    return { prepared, plan, rows: () => this.#kept.of(key, () => this.#see(prepared, plan)) };
  }

  /** Pictures take turns, so that their patches are not there all at a time, and nobody else waits until they are made. */
  async #see({ tiles }: PreparedPicture, plan: PicturePlan): Promise<Float32Array> {
    const giveBack = await this.#patches.take(Math.min(patchBytes(plan), PATCH_BYTES));
    try {
      const { preprocessor } = this.#parts.pool;
      const pictures = [];
      for (const [i, grid] of plan.grids.entries())
        pictures.push({ patches: await preprocessor.patchesInTurns(tiles[i]!, nextTurn), grid });
      return joined(await this.#parts.tower().see(pictures));
    } finally {
      giveBack();
    }
  }
}

const patchBytes = ({ grids, rowWidth }: PicturePlan): number =>
  grids.reduce((sum, grid) => sum + patchCount(grid), 0) * rowWidth * Float32Array.BYTES_PER_ELEMENT;

function joined(parts: readonly Float32Array[]): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}

/** A picture that is refused is a fault of its request. */
function requestsError(place: string, error: unknown): unknown {
  if (!(error instanceof PictureError)) return error;
  return new InvalidRequestError(`${place}: ${error.message}`, place, 'invalid_image');
}
