import { PictureError } from '../../../models/images/picture-error.js';
import { pictureIds } from '../../../models/images/picture-identity.js';
import type { PicturePool } from '../../../models/images/picture-pool.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import {
  type PicturePlan,
  type PicturePreprocessor,
  patchCount,
  pictureTokens,
} from '../../../models/images/preprocess/picture-preprocessor.js';
import { CHANNELS, type Pixels, type Size } from '../../../models/images/resize.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { Picture, PictureGrid } from '../../generation/pictures/picture.js';

/** What pictures are read with. */
export interface ReaderParts {
  pool: Pick<PicturePool, 'look' | 'prepare' | 'preprocessor'>;
  /** Digest of the tower, see TowerInfo. */
  towerDigest: string;
  vocabSize: number;
  placeholder: string;
  tokenId: number;
  /** Text of that token. */
  tokenText: string;
}

/** What is known of a picture without its pixels. */
export type PictureFacts = Pick<PreparedPicture, 'digest' | 'width' | 'height'>;

/** What a picture becomes. */
export interface PlannedPicture extends Pick<Picture, 'text' | 'grids'> {
  plan: PicturePlan;
  /** Tokens of its own. */
  count: number;
  /** Bytes of its tiles. */
  tileBytes: number;
}

/** Makes a picture's file the input of a model's tower, and its placeholder in a prompt. */
export class PictureReader {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly #parts: ReaderParts;

  constructor(parts: ReaderParts) {
    this.placeholder = parts.placeholder;
    this.tokenId = parts.tokenId;
    this.#parts = parts;
  }

  get preprocessor(): PicturePreprocessor {
    return this.#parts.pool.preprocessor;
  }

  /**
   * What a file's picture becomes, by its header.
   * @param place its place in the request
   * @throws InvalidRequestError
   */
  look(file: Uint8Array, place: string): PlannedPicture {
    try {
      return this.#planned(this.#parts.pool.look(file));
    } catch (error) {
      throw requestsError(place, error);
    }
  }

  /**
   * @param place place of the file in the request
   * @throws InvalidRequestError, PicturesBusyError, PictureDecoderError; the signal's reason
   */
  async read(file: Uint8Array, place: string, signal: AbortSignal | undefined): Promise<PreparedPicture> {
    const [prepared] = await this.#parts.pool.prepare([file], signal).catch((error: unknown) => {
      throw requestsError(place, error);
    });
    return prepared!;
  }

  /** What a picture of this size becomes. @throws PictureError for a size that the model's pictures cannot have */
  planOf({ width, height }: Size): PlannedPicture {
    return this.#planned(this.preprocessor.plan(width, height));
  }

  /** Ids that spell a picture in a prompt. */
  idsOf({ digest, ...size }: PictureFacts): Int32Array {
    const { towerDigest, vocabSize } = this.#parts;
    return pictureIds(digest, towerDigest, this.planOf(size).count, vocabSize);
  }

  #planned(plan: PicturePlan): PlannedPicture {
    const { tokenText } = this.#parts;
    return {
      plan,
      text: plan.prompt.map((part) => (typeof part === 'number' ? tokenText.repeat(part) : part)).join(''),
      grids: gridsOf(plan),
      count: pictureTokens(plan),
      tileBytes: plan.tiles.reduce((sum, tile) => sum + bytesOf(tile), 0),
    };
  }
}

const bytesOf = ({ width, height }: Size) => width * height * CHANNELS;

/** The tiles of a plan, of their pixels one after the other. */
export function tilesOf({ tiles }: Pick<PicturePlan, 'tiles'>, bytes: Uint8Array): Pixels[] {
  let end = 0;
  return tiles.map(({ width, height }) => {
    const begin = end;
    end += bytesOf({ width, height });
    return { width, height, bytes: bytes.subarray(begin, end) };
  });
}

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

/** A picture that is refused is a fault of its request. */
export function requestsError(place: string, error: unknown): unknown {
  if (!(error instanceof PictureError)) return error;
  return new InvalidRequestError(`${place}: ${error.message}`, place, 'invalid_image');
}
