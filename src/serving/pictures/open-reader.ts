import { messageOf } from '../../../base/error-text.js';
import { EngineError } from '../../../engine/building/engine.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { PicturePool, type PicturePoolOptions } from '../../../models/images/picture-pool.js';
import { pictureToken } from '../../../models/images/picture-token.js';
import type { PictureFiles } from '../../../models/images/preprocess/picture-preprocessor.js';
import type { TextCodec } from '../../generation/text-model.js';
import { PictureReader } from './picture-reader.js';

/** What of a model decides how pictures stand in its prompts. */
export interface ReaderModel {
  codec: Pick<TextCodec, 'tokenEntry' | 'specialTexts'>;
  vocabSize: number;
}

/**
 * Opens what reads a model's pictures; its processes start with the first picture.
 * @returns why its prompts can have none @throws CheckpointError
 */
export function readerOf(
  files: PictureFiles,
  towerDigest: string,
  { codec, vocabSize }: ReaderModel,
  options: PicturePoolOptions = {},
): { reader: PictureReader; pool: PicturePool } | string {
  const { id: tokenId, placeholder } = pictureToken(files);
  const tokenText = codec.tokenEntry(tokenId);
  const places = placeholder ?? tokenText;
  if (tokenText === null || !codec.specialTexts?.includes(tokenText) || !codec.specialTexts.includes(places!))
    return `The tokenizer has no special token for pictures: token ${tokenId} is ${tokenText ?? 'none'}.`;
  const pool = new PicturePool(files, options);
  const reader = new PictureReader({
    pool,
    towerDigest,
    vocabSize,
    placeholder: places!,
    tokenId,
    tokenText,
  });
  return { reader, pool };
}

/** What is opened, or why it cannot be, in a sentence without folders. */
export function orReason<T>(open: () => T | string): T | string {
  try {
    return open();
  } catch (error) {
    if (error instanceof EngineError || error instanceof CheckpointError)
      return withoutFolder(messageOf(error));
    throw error;
  }
}

/** A sentence that names a file without its folder: clients learn no folders. */
const withoutFolder = (sentence: string) => sentence.replace(/^[^:]*[\\/](?=[^:\\/]+: )/, '');
