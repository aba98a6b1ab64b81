import type { RequestPicture } from '../../../callbacks/token-request.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import type { Picture, SentPicture, Sight } from '../../generation/pictures/picture.js';
import type { PictureReader } from './picture-reader.js';

/** The sight of a model that runs elsewhere: pictures are read here, and become rows where their request runs. */
export class SendingSight implements Sight {
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
