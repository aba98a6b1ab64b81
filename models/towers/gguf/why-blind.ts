import type { TextCheckpoint } from './open-gguf-tower.js';

/** Types of parts that are pictures, as chat templates compare them. */
const PICTURE_PART = /['"](?:image|image_url)['"]/;

/** Why a GGUF does not see that was made to: its chat template knows pictures, and there is no tower. null: it reads texts alone. */
export function whyBlind({ path, config, tokenizer, format }: TextCheckpoint): string | null {
  const knowsPictures = config.promptLevels !== undefined || PICTURE_PART.test(tokenizer.chatTemplate ?? '');
  if (format !== 'gguf' || !knowsPictures) return null;
  return `${path}: no GGUF of its tower, with mmproj in its name, lies next to it, and none is named with --mmproj.`;
}
