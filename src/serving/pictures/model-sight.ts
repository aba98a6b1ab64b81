import { ByteBudget } from '../../../models/images/byte-budget.js';
import type { Picture, SeenPicture, Sight } from '../../generation/pictures/picture.js';
import { KnownFiles } from './known-files.js';
import { type PictureFacts, type PictureReader, tilesOf } from './picture-reader.js';
import { PictureRows, type RowParts } from './picture-rows.js';

/** What a model that sees makes of pictures in its prompts. */
export interface SightParts extends Omit<RowParts, 'preprocessor'> {
  reader: PictureReader;
  /** Bytes of a row that the tower makes. */
  rowBytes: number;
}

/** How often rows of pictures were made or were there, and files were read or known. */
export interface PictureCounts {
  rows: PictureRows['counts'];
  files: KnownFiles['counts'];
}

/** Bytes of pictures of other processes that are there at a time. */
const MAX_SENT_BYTES = 2 ** 26;

/**
 * A model's way from a picture's file to its rows in the prompt:
 *
 *   file -> KnownFiles, or PictureReader (decoded, resized, in a process of its own; ids by its content)
 *        -> PictureRows (kept, or patches -> TowerHost, with pictures of other requests)
 */
export class ModelSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly reader: PictureReader;
  readonly #rowBytes: number;
  readonly #rows: PictureRows;
  readonly #files = new KnownFiles();
  /** Those who wait for it are bounded by the requests of a worker. */
  readonly #sent = new ByteBudget(MAX_SENT_BYTES, Number.POSITIVE_INFINITY);

  constructor({ reader, rowBytes, ...parts }: SightParts) {
    this.reader = reader;
    this.placeholder = reader.placeholder;
    this.tokenId = reader.tokenId;
    this.#rowBytes = rowBytes;
    this.#rows = new PictureRows({ ...parts, preprocessor: reader.preprocessor });
  }

  get counts(): PictureCounts {
    return { rows: this.#rows.counts, files: this.#files.counts };
  }

  look(file: Uint8Array, place: string): Picture<SeenPicture> {
    const { text, grids, tileBytes, count } = this.reader.look(file, place);
    return {
      ...{ text, grids },
      // Its rows are there once more on their way into the engine; its patches are counted by themselves.
      bytes: tileBytes + 2 * count * this.#rowBytes,
      decode: (signal, salt) => this.#decode(file, place, signal, salt),
    };
  }

  async #decode(
    file: Uint8Array,
    place: string,
    signal: AbortSignal | undefined,
    salt = 0n,
  ): Promise<SeenPicture> {
    const { facts, read } = await this.#files.of(file, salt, () => this.reader.read(file, place, signal));
    const { plan } = this.reader.planOf(facts);
    // Of a known file whose rows are not kept any more. Others may wait for them too, who do not leave with this request.
    const tiles = async () => (read ?? (await this.reader.read(file, place, undefined))).tiles;
    const rows = () => this.#rows.of({ digest: facts.digest, plan }, salt, async (see) => see(await tiles()));
    return { ids: this.reader.idsOf(facts), rows };
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
