import { messageOf } from '../../../base/error-text.js';
import { joinedBytes } from '../../../base/joined-arrays.js';
import { failure } from '../../../callbacks/request-failure.js';
import { RequestError, type RequestPicture } from '../../../callbacks/token-request.js';
import { towerPictures } from '../../../engine/building/tower-engine.js';
import { ByteBudget } from '../../../models/images/byte-budget.js';
import { PicturesBusyError } from '../../../models/images/picture-error.js';
import { type PictureHelpers, pictureHelpers } from '../../../models/images/picture-pool.js';
import type { PreparedPicture } from '../../../models/images/prepare-picture.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { Picture, SentPicture, Sight } from '../../generation/pictures/picture.js';
import { KnownFiles } from './known-files.js';
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

/** The sight of a model that runs elsewhere: pictures are read here, or known from before, and become rows where their request runs. */
class SendingSight implements Sight {
  readonly placeholder: string;
  readonly tokenId: number;
  readonly #reader: PictureReader;
  readonly #files = new KnownFiles();

  constructor(reader: PictureReader) {
    this.placeholder = reader.placeholder;
    this.tokenId = reader.tokenId;
    this.#reader = reader;
  }

  look(file: Uint8Array, place: string): Picture<SentPicture> {
    const { text, grids, tileBytes } = this.#reader.look(file, place);
    const decode = (signal: AbortSignal | undefined, salt?: bigint) =>
      this.#decode(file, place, signal, salt);
    return { text, grids, bytes: tileBytes, decode };
  }

  /** How often files were read, and how often they were known. */
  get files(): KnownFiles['counts'] {
    return this.#files.counts;
  }

  async #decode(
    file: Uint8Array,
    place: string,
    signal: AbortSignal | undefined,
    salt = 0n,
  ): Promise<SentPicture> {
    const read = () => this.#reader.read(file, place, signal);
    const found = await this.#files.of(file, salt, read);
    const { digest, width, height } = found.facts;
    const { tileBytes: numBytes } = this.#reader.planOf(found.facts);
    const bytes = found.read === null ? readOnce(read) : ofPrepared(found.read);
    return { ids: this.#reader.idsOf(found.facts), sent: { digest, width, height, numBytes, bytes } };
  }
}

const ofPrepared = ({ tiles }: PreparedPicture): RequestPicture['bytes'] => {
  const whole = Promise.resolve(joinedBytes(tiles.map(({ bytes }) => bytes)));
  return () => whole;
};

/** Pixels of a file that is known: it is read only where a worker does not have its rows, for all who ask for a part of them. */
function readOnce(read: () => Promise<PreparedPicture>): RequestPicture['bytes'] {
  let reading: ReturnType<RequestPicture['bytes']> | null = null;
  const bytes = async () => {
    try {
      return await ofPrepared(await read())();
    } catch (error) {
      reading = null;
      if (error instanceof PicturesBusyError) return null;
      const kind = error instanceof InvalidRequestError ? 'invalid' : 'internal';
      throw RequestError.of(failure(kind, messageOf(error)), error);
    }
  };
  return () => (reading ??= bytes());
}
