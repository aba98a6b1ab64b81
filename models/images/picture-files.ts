import { join } from 'node:path';
import { isObject, type JsonObject, readJsonObject } from '../checkpoints/file-reading.js';
import { PICTURE_FILES } from '../checkpoints/picture-file-names.js';
import type { PictureFiles } from './preprocess/picture-preprocessor.js';

/** Most bytes of a file that says how pictures are prepared. */
const MAX_BYTES = 4 * 2 ** 20;

/**
 * What a model's folder says of how its pictures are prepared; null: it has no image processor.
 * @throws CheckpointError for a file that is no JSON
 */
export function readPictureFiles(folder: string): PictureFiles | null {
  const read = (name: string) => readJsonObject(join(folder, name), MAX_BYTES) ?? {};
  const [own, processor] = PICTURE_FILES.map(read) as [JsonObject, JsonObject];
  const inner = isObject(processor.image_processor) ? processor.image_processor : {};
  const imageProcessor = Object.keys(own).length > 0 ? own : inner;
  if (Object.keys(imageProcessor).length === 0) return null;
  return { imageProcessor, processor, config: read('config.json'), tokenizer: read('tokenizer_config.json') };
}
