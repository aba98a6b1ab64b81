import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import type { PictureFiles } from './preprocess/picture-preprocessor.js';

/** Tokens that stand for pictures. */
export interface PictureToken {
  /** Token that stands for each token of a picture. */
  id: number;
  /** Text that a chat template writes for a picture; null: that token's. */
  placeholder: string | null;
}

/** Tokens that stand for a model's pictures, as its files name them. @throws CheckpointError where they name none */
export function pictureToken({ config, imageProcessor, tokenizer }: PictureFiles): PictureToken {
  const fields = new ConfigFields('config.json', config);
  const name = fields.raw('image_token_id') === undefined ? 'image_token_index' : 'image_token_id';
  const id = fields.integer(name, 0, LIMITS.vocabSize);
  // Gemma 3's template writes what begins a picture, in whose place everything about it comes.
  const isGemma3 = `${imageProcessor.image_processor_type}`.startsWith('Gemma3');
  const begin = new ConfigFields('tokenizer_config.json', tokenizer).string('boi_token');
  return { id, placeholder: isGemma3 ? (begin ?? '<start_of_image>') : null };
}
