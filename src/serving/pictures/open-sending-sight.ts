import type { RequestPicture } from '../../../callbacks/token-request.js';
import { towerPictures } from '../../../engine/building/tower-engine.js';
import { ByteBudget } from '../../../models/images/byte-budget.js';
import { type PictureHelpers, pictureHelpers } from '../../../models/images/picture-pool.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import type { Picture, SentPicture, Sight } from '../../generation/pictures/picture.js';
import { orReason, type ReaderModel, readerOf } from './open-reader.js';
import type { SightFacts } from './open-sight.js';
import type { PictureReader } from './picture-reader.js';

/** Processes that read pictures at once, for all models that run elsewhere. */
const READERS = 2;
/** Bytes that these pictures take while they are read. */
const MEMORY_BYTES = 2 ** 30;

let shared: { helpers: PictureHelpers; memory: ByteBudget } | null = null;

/**
 * Opens the sight of a model that runs elsewhere. @param directory with its files that a gateway has
 * @returns why it takes no pictures
 */
export function openSendingSight(
  directory: string,
  { tower, maxPatches }: SightFacts,
  model: ReaderModel,
): SendingSight | string {
  return orReason(() => {
    // Those of many models would be many processes, of which few are in use.
    shared ??= { helpers: pictureHelpers({ workers: READERS }), memory: new ByteBudget(MEMORY_BYTES) };
    const opened = readerOf({ ...towerPictures(directory), maxPatches }, tower, model, shared);
    return typeof opened === 'string' ? opened : new SendingSight(opened.reader);
  });
}

/** The sight of a model that runs elsewhere: pictures are read here, and become rows where their request runs. */
class SendingSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly #reader: PictureReader;

  constructor(reader: PictureReader) {
    this.placeholder = reader.placeholder;
    this.tokenId = reader.tokenId;
    this.#reader = reader;
  }

  look(file: Uint8Array, place: string): Picture<SentPicture> {
    const { text, grids, tileBytes } = this.#reader.look(file, place);
    const decode = async (signal: AbortSignal | undefined) => {
      const prepared = await this.#reader.read(file, place, signal);
      return { ids: this.#reader.idsOf(prepared), sent: sentOf(prepared) };
    };
    return { text, grids, bytes: tileBytes, decode };
  }
}

function sentOf({ digest, width, height, tiles }: PreparedPicture): RequestPicture {
  const [first] = tiles;
  const bytes = tiles.length === 1 ? first!.bytes : Buffer.concat(tiles.map((tile) => tile.bytes));
  return { digest, width, height, bytes };
}
