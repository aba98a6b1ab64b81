import type { GrammarMatcher } from '../../../engine/guided/grammar-matcher.js';
import type { Places } from '../../../engine/guided/places.js';
import type { Random } from '../../../tools/soak/random.js';

/** Bytes that lead to an end: quotes and brackets that close. */
const CLOSING = [0x22, 0x5d, 0x7d];

/** Most sets of places that are looked at for a way to the end. */
const MAX_SEARCHED = 3000;

/** The shortest bytes to the end of the guide; null where none is found. */
function wayToEnd(matcher: GrammarMatcher, from: Places): number[] | null {
  const cameFrom = new Map<Places, { before: Places; byte: number } | null>([[from, null]]);
  for (const places of cameFrom.keys()) {
    if (places.isAccepting) {
      const bytes: number[] = [];
      for (let step = cameFrom.get(places)!; step !== null; step = cameFrom.get(step.before)!)
        bytes.unshift(step.byte);
      return bytes;
    }
    if (cameFrom.size > MAX_SEARCHED) return null;
    matcher.fits(places, 0);
    for (const byte of places.classes!.byteOf.slice(1)) {
      const next = matcher.step(places, byte)!.places;
      if (!cameFrom.has(next)) cameFrom.set(next, { before: places, byte });
    }
  }
  return null;
}

/** Walks at random wherever the guide lets it, and after `limit` bytes to the end; null where that is too far. */
export function randomText(matcher: GrammarMatcher, random: Random, limit: number): Buffer | null {
  const bytes: number[] = [];
  let places = matcher.start;
  while (bytes.length < limit) {
    const fitting = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) =>
      matcher.fits(places, byte),
    );
    if (places.isAccepting && (fitting.length === 0 || random.chance(0.3))) return Buffer.from(bytes);
    const closing = CLOSING.filter((byte) => fitting.includes(byte));
    const byte = random.pick(closing.length > 0 && random.chance(0.5) ? closing : fitting);
    bytes.push(byte);
    places = matcher.step(places, byte)!.places;
  }
  const end = wayToEnd(matcher, places);
  return end && Buffer.from([...bytes, ...end]);
}
