import type { GrammarMatcher, Places } from './grammar-matcher.js';
import type { TokenTrie } from './token-trie.js';

/**
 * The tokens that fit behind a text: bit t % 32 of word t / 32 is set where all bytes of token t do. The mask stays with
 * the places.
 */
export function tokenMask(matcher: GrammarMatcher, trie: TokenTrie, places: Places): Int32Array {
  if (places.mask !== null) return places.mask;
  const mask = new Int32Array(Math.ceil(trie.vocabSize / 32));
  const { numNodes, bytes, depths, skips, tokens, nextSame } = trie;
  const path: (readonly (Places | null)[])[] = new Array(trie.maxDepth + 1);
  path[0] = matcher.nextOf(places);
  for (let node = 0; node < numNodes; ) {
    const depth = depths[node]!;
    const next = path[depth]![bytes[node]!]!;
    if (next === null) {
      node = skips[node]!;
      continue;
    }
    for (let token = tokens[node]!; token >= 0; token = nextSame[token]!) {
      mask[token >> 5]! |= 1 << (token & 31);
    }
    if (skips[node]! > node + 1) path[depth + 1] = next.next ?? matcher.nextOf(next);
    node++;
  }
  places.mask = mask;
  return mask;
}
