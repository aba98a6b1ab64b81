import { isObject } from '../checkpoints/file-reading.js';
import type { PictureFiles } from './preprocess/picture-preprocessor.js';

/** Model types whose masks have no causality within a picture, in transformers (create_masks_for_generate). */
const TYPES: ReadonlySet<unknown> = new Set(['gemma3', 'paligemma', 't5gemma2']);

/**
 * True where each token of a picture attends to the picture's later tokens too: in Gemma 3 always, in others
 * where their configuration has use_bidirectional_attention (Gemma 4: "vision").
 */
export function attendsBothWays({ config }: Pick<PictureFiles, 'config'>): boolean {
  const { model_type: type, text_config: text } = config;
  const setting = isObject(text) ? text.use_bidirectional_attention : config.use_bidirectional_attention;
  return TYPES.has(type) || (setting !== undefined && setting !== null && setting !== false);
}
