import { ByteBudget } from '../../../models/images/byte-budget.js';
import type { Picture, SeenPicture, Sight } from '../../generation/pictures/picture.js';
import { type PictureFacts, type PictureReader, tilesOf } from './picture-reader.js';
import { PictureRows, type RowParts } from './picture-rows.js';

/** What a model that sees makes of pictures in its prompts. */
export interface SightParts extends Omit<RowParts, 'preprocessor'> {
  reader: PictureReader;
  /** Bytes of a row that the tower makes. */
  rowBytes: number;
}

/** Bytes of pictures of other processes that are there at a time. */
const MAX_SENT_BYTES = 2 ** 26;

/**
 * A model's way from a picture's file to its rows in the prompt:
 *
 *   file -> PictureReader (decoded, resized, in a process of its own; ids by its content)
 *        -> PictureRows (kept, or patches -> TowerHost, with pictures of other requests)
 */
export class ModelSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly reader: PictureReader;
  readonly #rowBytes: number;
  readonly #rows: PictureRows;
  /** Those who wait for it are bounded by the requests of a worker. */
  readonly #sent = new ByteBudget(MAX_SENT_BYTES, Number.POSITIVE_INFINITY);

  constructor({ reader, rowBytes, ...parts }: SightParts) {
    this.reader = reader;
    this.placeholder = reader.placeholder;
    this.tokenId = reader.tokenId;
    this.#rowBytes = rowBytes;
    this.#rows = new PictureRows({ ...parts, preprocessor: reader.preprocessor });
  }

  /** See PictureRows. */
  get counts(): PictureRows['counts'] {
    return this.#rows.counts;
  }

  look(file: Uint8Array, place: string): Picture<SeenPicture> {
    const { text, grids, tileBytes, count } = this.reader.look(file, place);
    return {
      ...{ text, grids },
      // Its rows are there once more on their way into the engine; its patches are counted by themselves.
      bytes: tileBytes + 2 * count * this.#rowBytes,
      decode: (signal) => this.#decode(file, place, signal),
    };
  }

  async #decode(file: Uint8Array, place: string, signal: AbortSignal | undefined): Promise<SeenPicture> {
    const prepared = await this.reader.read(file, place, signal);
    const { plan } = this.reader.planOf(prepared);
    const rows = (salt = 0n) =>
      this.#rows.of({ digest: prepared.digest, plan }, salt, (see) => see(prepared.tiles));
    return { ids: this.reader.idsOf(prepared), rows };
  }

  /**
   * Rows of a picture that another process has read.
   * @param salt only pictures of the same one share rows @param bring brings its tiles, where no rows are kept
   */
  rowsOf(facts: PictureFacts, salt: bigint, bring: () => Promise<Uint8Array>): Promise<Float32Array> {
    const { plan, tileBytes } = this.reader.planOf(facts);
    return this.#rows.of({ digest: facts.digest, plan }, salt, async (see) => {
      const giveBack = await this.#sent.take(Math.min(MAX_SENT_BYTES, tileBytes));
      try {
        return await see(tilesOf(plan, await bring()));
      } finally {
        giveBack();
      }
    });
  }
}
