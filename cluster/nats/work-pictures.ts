import { SkeinError } from '../../base/skein-error.js';
import { JoinedRows } from '../../callbacks/joined-rows.js';
import type { TokenRequest } from '../../callbacks/token-request.js';
import { fetchBytes } from './fetch-bytes.js';
import type { ItemPicture, WorkItem } from './messages.js';
import { PacketError } from './packet.js';
import type { WorkerPort } from './worker-port.js';

/** What a worker sees with. */
export interface WorkSight {
  /** @throws PacketError where these are not the pictures of the request's prompt, or none that the model sees */
  check(request: TokenRequest, pictures: readonly ItemPicture[]): void;
  /**
   * Rows of a picture, one for each of its tokens: those that are kept, or made of its bytes, for all who ask for them meanwhile.
   * @param salt only pictures of the same one share rows @throws what `bring` throws, for whichever request it was; RequestError
   */
  rows(
    picture: ItemPicture,
    salt: bigint,
    bring: () => Promise<Uint8Array>,
  ): Promise<readonly Float32Array[]>;
}

/** Milliseconds after which a picture that did not come is asked for again. */
const RETRY_MS = 250;
/** Longest slice: others of the connection want to pass too. */
const SLICE_BYTES = 512 * 1024;
const NO_SIGHT = "The request has pictures, and the worker's model takes none.";

/** The request for which a picture was to be brought no longer waits. */
class UnwantedPictureError extends SkeinError {
  override name = 'UnwantedPictureError';
  override readonly code = 'SKEIN_PICTURE_UNWANTED';
}

/** Rows of the pictures of a worker's requests: it asks their gateway for those alone whose rows it does not have. */
export class WorkPictures {
  readonly #sight: WorkSight | null;
  readonly #port: Pick<WorkerPort, 'fetchPicture' | 'maxBytes'>;

  /** @param sight null: the model takes no pictures */
  constructor(sight: WorkSight | null, port: Pick<WorkerPort, 'fetchPicture' | 'maxBytes'>) {
    this.#sight = sight;
    this.#port = port;
  }

  /**
   * The request with the rows of its pictures. While its gateway does not answer it waits, for as long as the request is wanted.
   * @throws PacketError, RequestError; anything once the request is not wanted
   */
  async bring(
    item: WorkItem & Required<Pick<WorkItem, 'pictures'>>,
    request: TokenRequest,
    isWanted: () => boolean,
  ): Promise<TokenRequest> {
    const sight = this.#sight;
    if (sight === null) throw new PacketError(NO_SIGHT);
    const { pictures } = item;
    sight.check(request, pictures);
    const salt = request.cacheSalt ?? 0n;
    const rowsOf = async (picture: ItemPicture, index: number) => {
      for (;;) {
        try {
          return await sight.rows(picture, salt, () => this.#fetch(item, index, picture, isWanted));
        } catch (error) {
          // It was another request that brought the picture, and was cancelled.
          if (!(error instanceof UnwantedPictureError) || !isWanted()) throw error;
        }
      }
    };
    const promptEmbeddings = (await Promise.all(pictures.map(rowsOf))).flat();
    return { ...request, promptEmbeddings, joinedEmbeddings: await JoinedRows.of(promptEmbeddings) };
  }

  async #fetch(
    { id, attempt, gateway }: WorkItem,
    index: number,
    { numBytes }: ItemPicture,
    isWanted: () => boolean,
  ): Promise<Uint8Array> {
    const ask = (offset: number, length: number) =>
      this.#port.fetchPicture(gateway, { kind: 'picture', id, attempt, index, offset, length });
    while (isWanted()) {
      const maxBytes = Math.min(SLICE_BYTES, this.#port.maxBytes);
      const bytes = await fetchBytes(0, numBytes, { maxBytes, ask, isWanted });
      if (bytes !== null) return bytes;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
    throw new UnwantedPictureError('The request is not wanted any more.');
  }
}
