import type { TowerHost } from '../../../host/tower-host.js';
import { PictureError } from '../../../models/images/picture-error.js';
import { pictureIds } from '../../../models/images/picture-identity.js';
import type { PicturePool } from '../../../models/images/picture-pool.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import { type PicturePlan, patchCount } from '../../../models/images/preprocess/picture-preprocessor.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { Picture, PictureGrid, Sight } from '../../generation/pictures/picture.js';
import { KeptRows } from './kept-rows.js';

/** What pictures go through. */
export interface SightParts {
  pool: PicturePool;
  /** Opened with the first picture. */
  tower: () => Pick<TowerHost, 'see'>;
  /** Digest of the tower, see TowerInfo. */
  towerDigest: string;
  vocabSize: number;
  placeholder: string;
  tokenId: number;
  /** Text of that token. */
  tokenText: string;
  /** Most bytes of rows that are kept. */
  maxKeptBytes: number;
}

/**
 * A model's way from a picture's file to its rows in the prompt:
 *
 *   file -> PicturePool (decoded, resized, in a process of its own) -> ids by its content
 *        -> rows that are kept, or patches -> TowerHost (with pictures of other requests) -> rows
 */
export class ModelSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly #parts: SightParts;
  readonly #kept: KeptRows;

  constructor(parts: SightParts) {
    this.placeholder = parts.placeholder;
    this.tokenId = parts.tokenId;
    this.#parts = parts;
    this.#kept = new KeptRows(parts.maxKeptBytes);
  }

  async read(file: Uint8Array, place: string, signal: AbortSignal | undefined): Promise<Picture> {
    const { pool, towerDigest, vocabSize, tokenText } = this.#parts;
    const [prepared] = await inRequestsWords(place, pool.prepare([file], signal));
    const { width, height, digest } = prepared!;
    const plan = pool.preprocessor.plan(width, height);
    const grids = gridsOf(plan);
    const count = grids.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    const key = Buffer.from(digest).toString('hex');
    const ofTiles = prepared!.tiles.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
    return {
      text: plan.prompt.map((part) => (typeof part === 'number' ? tokenText.repeat(part) : part)).join(''),
      ids: pictureIds(digest, towerDigest, count, vocabSize),
      grids,
      // Its patches are there twice while it is seen; its rows are smaller.
      bytes: ofTiles + 2 * patchBytes(plan),
      // One who leaves does not end the work that others wait for.
      rows: () => this.#kept.of(key, () => this.#see(prepared!, plan)),
    };
  }

  async #see({ tiles }: PreparedPicture, { grids, rowWidth }: PicturePlan): Promise<Float32Array> {
    const patches = this.#parts.pool.preprocessor.patches(tiles);
    let end = 0;
    const pictures = grids.map((grid) => {
      const begin = end;
      end += patchCount(grid) * rowWidth;
      return { patches: patches.slice(begin, end), grid };
    });
    const rows = await this.#parts.tower().see(pictures);
    return joined(rows);
  }
}

const patchBytes = ({ grids, rowWidth }: PicturePlan): number =>
  grids.reduce((sum, grid) => sum + patchCount(grid), 0) * rowWidth * Float32Array.BYTES_PER_ELEMENT;

/** Runs of a picture's tokens: of one picture that is seen as it is, the grid of its rows; of others a line. */
function gridsOf({ prompt, grids }: PicturePlan): PictureGrid[] {
  const counts = prompt.filter((part) => typeof part === 'number');
  const [grid] = grids;
  if (counts.length === 1 && grids.length === 1) {
    const side = Math.sqrt(patchCount(grid!) / counts[0]!);
    const whole = { rows: grid!.rows / side, columns: grid!.columns / side };
    if (Number.isInteger(whole.rows) && Number.isInteger(whole.columns)) return [whole];
  }
  return counts.map((count) => ({ rows: 1, columns: count }));
}

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
async function inRequestsWords<T>(place: string, made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    if (!(error instanceof PictureError)) throw error;
    throw new InvalidRequestError(`${place}: ${error.message}`, place, 'invalid_image');
  }
}
