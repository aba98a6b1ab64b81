import type { TokenRequest } from '../../callbacks/token-request.js';
import type { ItemPicture } from '../../cluster/nats/messages.js';
import { PacketError } from '../../cluster/nats/packet.js';
import type { WorkSight } from '../../cluster/nats/work-pictures.js';
import { PictureError } from '../../models/images/picture-error.js';
import { checkSize, PICTURE_LIMITS } from '../../models/images/picture-limits.js';
import { spells, splitRows } from '../generation/pictures/spell-pictures.js';
import type { ModelSight } from '../serving/pictures/model-sight.js';
import type { PlannedPicture } from '../serving/pictures/picture-reader.js';

/** Makes rows of pictures that gateways have read. */
export class QueueSight implements WorkSight {
  readonly #sight: Pick<ModelSight, 'reader' | 'rowsOf'>;

  constructor(sight: Pick<ModelSight, 'reader' | 'rowsOf'>) {
    this.#sight = sight;
  }

  check(request: TokenRequest, pictures: readonly ItemPicture[]): void {
    const words = pictures.map((picture) => ({
      ...this.#planned(picture),
      ids: this.#sight.reader.idsOf(picture),
    }));
    // Rows that do not belong to the prompt's ids would be cached under them.
    if (!spells(request, words))
      throw new PacketError('The prompt of a request does not spell its pictures.');
  }

  async rows(
    picture: ItemPicture,
    salt: bigint,
    bring: () => Promise<Uint8Array>,
  ): Promise<readonly Float32Array[]> {
    const rows = await this.#sight.rowsOf(picture, salt, bring);
    return splitRows(rows, this.#planned(picture).count);
  }

  /** @throws PacketError for a picture that no gateway would send */
  #planned({ width, height, numBytes }: ItemPicture): PlannedPicture {
    try {
      checkSize('sent', width, height, PICTURE_LIMITS);
      const planned = this.#sight.reader.planOf({ width, height });
      if (planned.tileBytes === numBytes) return planned;
      throw new PictureError(
        `The sent picture has ${numBytes} bytes; one of ${width} x ${height} pixels has ${planned.tileBytes}.`,
      );
    } catch (error) {
      if (error instanceof PictureError) throw new PacketError(error.message);
      throw error;
    }
  }
}
