import type { GrammarMatcher } from './grammar-matcher.js';
import type { Places } from './places.js';
import { tokenMask } from './token-mask.js';
import type { TokenTrie } from './token-trie.js';

/** Most tokens to look ahead. */
export const MAX_FORCED_TOKENS = 16;
/** Most bytes of text from which these tokens are cut. */
const MAX_FORCED_BYTES = 256;
/** Most possible next tokens for which forced tokens are computed. */
const MAX_WAYS = 32;

const NONE = new Int32Array(0);

/**
 * Finds the tokens that are certain after each token that may come next: (token, count, `count` tokens) for
 * each token that has some.
 *
 *   the text so far     {
 *   what may come next  "   "n   "na   "name      the grammar leaves `"name":` and nothing else
 *   what is said        "  -> name ":     "n -> ame ":     "na -> me ":     "name -> ":
 *
 * The result is stored in the places. Masks of the places after these tokens are made at once, so that no
 * token is listed after which there could be no mask.
 */
export function forcedBehind(matcher: GrammarMatcher, trie: TokenTrie, places: Places): Int32Array {
  if (places.forcedBehind !== null) return places.forcedBehind;
  const entries: number[] = [];
  for (const token of fewTokens(tokenMask(matcher, trie, places))) {
    const behind = matcher.follow(places, trie.bytesOf(token)!)!;
    const forced = forcedTokens(matcher, trie, behind);
    if (forced.length > 0) entries.push(token, forced.length, ...forced);
  }
  places.forcedBehind = entries.length === 0 ? NONE : Int32Array.from(entries);
  matcher.noteBytes(places.forcedBehind.byteLength);
  return places.forcedBehind;
}

/** The tokens of a mask; none if there are more than MAX_WAYS. */
function fewTokens(mask: Int32Array): readonly number[] {
  const tokens: number[] = [];
  for (let word = 0; word < mask.length; word++) {
    for (let rest = mask[word]!; rest !== 0; rest &= rest - 1) {
      if (tokens.length === MAX_WAYS) return [];
      tokens.push(32 * word + 31 - Math.clz32(rest & -rest));
    }
  }
  return tokens;
}

/** The text that the grammar forces after these places, cut into the longest tokens. Stored in the places. */
function forcedTokens(matcher: GrammarMatcher, trie: TokenTrie, places: Places): Int32Array {
  if (places.forced !== null) return places.forced;
  // Stays empty if the search takes too long or makes too many places; the answer is not at fault for that.
  places.forced = NONE;
  const { bytes, end } = forcedText(matcher, places);
  const goesOn = (byte: number) => matcher.fits(end, byte);
  const tokens: number[] = [];
  let behind = places;
  for (let start = 0; start < bytes.length && tokens.length < MAX_FORCED_TOKENS; ) {
    const { token, length, isCut } = trie.longestIn(bytes, start, goesOn);
    // Text that follows may belong to the last token, so that its id is not certain.
    if (token < 0 || isCut) break;
    behind = matcher.follow(behind, bytes.subarray(start, start + length))!;
    tokenMask(matcher, trie, behind);
    tokens.push(token);
    start += length;
  }
  places.forced = Int32Array.from(tokens);
  return places.forced;
}

/**
 * Follows the grammar byte by byte, as long as only one byte may come next and the text may not end. `end`: the places
 * after it.
 */
function forcedText(matcher: GrammarMatcher, places: Places): { bytes: Uint8Array; end: Places } {
  const bytes: number[] = [];
  let end = places;
  while (bytes.length < MAX_FORCED_BYTES && !end.isAccepting) {
    const only = matcher.onlyByte(end);
    if (only < 0) break;
    bytes.push(only);
    end = matcher.step(end, only)!.places;
  }
  return { bytes: Uint8Array.from(bytes), end };
}
