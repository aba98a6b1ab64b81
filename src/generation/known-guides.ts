import { RecentValues } from '../../base/recent-values.js';
import type { ChatGuide } from './chat-guide.js';
import type { TextCodec } from './text-model.js';

/** Most guides of a model that are remembered, and most UTF-16 units of them and their keys: 4 MB at most. */
const MAX_GUIDES = 64;
const MAX_UNITS = 2 ** 21;

const known = new WeakMap<TextCodec, RecentValues<ChatGuide>>();

/**
 * A guide that has been made and checked before for the same key, or a new one. Functions that agents send with each request would
 * else be checked, written and checked again one by one.
 * @param key all that the guide depends on beside the codec
 */
export async function knownGuide(
  codec: TextCodec,
  key: string,
  make: () => Promise<ChatGuide>,
): Promise<ChatGuide> {
  let guides = known.get(codec);
  if (guides === undefined) {
    guides = new RecentValues({ maxCount: MAX_GUIDES, maxUnits: MAX_UNITS });
    known.set(codec, guides);
  }
  const before = guides.get(key);
  if (before !== undefined) return before;
  const made = await make();
  const units = (made.guide?.guide.length ?? 0) + made.warnings.join('').length;
  guides.set(key, made, key.length + units);
  return made;
}
