import { pictureIds } from '../../../models/images/picture-identity.js';
import {
  type PicturePlan,
  patchCount,
  pictureTokens,
} from '../../../models/images/preprocess/picture-preprocessor.js';
import { CHANNELS } from '../../../models/images/resize.js';
import type { DecodedPicture, Picture, PictureGrid, Sight } from '../../generation/pictures/picture.js';
import { PictureRows, type RowParts } from './picture-rows.js';

/** What a model that sees makes of pictures in its prompts. */
export interface SightParts extends RowParts {
  /** Digest of the tower, see TowerInfo. */
  towerDigest: string;
  vocabSize: number;
  placeholder: string;
  tokenId: number;
  /** Text of that token. */
  tokenText: string;
  /** Bytes of a row that the tower makes. */
  rowBytes: number;
}

/** A model's way from a picture's file to its rows in the prompt, with ids that spell its content: see PictureRows. */
export class ModelSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly #parts: SightParts;
  readonly #rows: PictureRows;

  constructor(parts: SightParts) {
    this.placeholder = parts.placeholder;
    this.tokenId = parts.tokenId;
    this.#parts = parts;
    this.#rows = new PictureRows(parts);
  }

  look(file: Uint8Array, place: string): Picture {
    const { tokenText, rowBytes } = this.#parts;
    const plan = this.#rows.look(file, place);
    const ofTiles = plan.tiles.reduce((sum, { width, height }) => sum + width * height * CHANNELS, 0);
    return {
      text: plan.prompt.map((part) => (typeof part === 'number' ? tokenText.repeat(part) : part)).join(''),
      grids: gridsOf(plan),
      // Its rows are there once more on their way into the engine; its patches are counted by themselves.
      bytes: ofTiles + 2 * pictureTokens(plan) * rowBytes,
      decode: (signal) => this.#decode(file, place, signal),
    };
  }

  async #decode(file: Uint8Array, place: string, signal: AbortSignal | undefined): Promise<DecodedPicture> {
    const { towerDigest, vocabSize } = this.#parts;
    const { prepared, plan, rows } = await this.#rows.read(file, place, signal);
    return { ids: pictureIds(prepared.digest, towerDigest, pictureTokens(plan), vocabSize), rows };
  }
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
