import { towerPictures } from '../../../engine/building/tower-engine.js';
import { ByteBudget } from '../../../models/images/byte-budget.js';
import { type PictureHelpers, pictureHelpers } from '../../../models/images/picture-pool.js';
import { orReason, type ReaderModel, readerOf } from './open-reader.js';
import type { SightFacts } from './open-sight.js';
import { SendingSight } from './sending-sight.js';

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
