/**
 * Finds the words that a sequence ends with. The words are kept in the order of their tokens read from the last one on,
 * so that the words which still fit are always a range of the list:
 *
 *   words, backwards   b         tokens  ... x a b
 *                      b a                        b: the words 0 to 2     b a: 1 and 2     b a x: 2
 *                      b a x
 *
 * A look-up takes a step for each token of the longest word that fits, and a search where the range gets smaller. So long
 * words, and many words that begin or end alike, cost no more.
 */
export class WordEndings {
  readonly #words: readonly Int32Array[];
  /** Place in the given list of each word of #words. */
  readonly #places: readonly number[];

  /** @param words none of them empty */
  constructor(words: readonly Int32Array[]) {
    this.#places = sortedBackwards(words);
    this.#words = this.#places.map((place) => words[place]!);
  }

  /** Calls `found` with the place of each word that tokens[0 .. length) ends with, the shortest first. */
  forEach(tokens: Int32Array, length: number, found: (place: number) => void): void {
    const words = this.#words;
    let [first, end] = [0, words.length];
    for (let depth = 0; first < end && depth < length; depth++) {
      const token = tokens[length - 1 - depth]!;
      // Usually all words that still fit have the same token here.
      if (tokenAt(words[first]!, depth) !== token) first = this.#boundOf(token, depth, first, end);
      if (first < end && tokenAt(words[end - 1]!, depth) !== token)
        end = this.#boundOf(token + 1, depth, first, end);
      for (; first < end && words[first]!.length === depth + 1; first++) found(this.#places[first]!);
    }
  }

  /** Index of the first of words [first, end) whose token at this depth is not less than `token`. */
  #boundOf(token: number, depth: number, first: number, end: number): number {
    let [low, high] = [first, end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tokenAt(this.#words[middle]!, depth) < token) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Token at `depth` counted from the word's last one; -1 in front of the first. */
function tokenAt(word: Int32Array, depth: number): number {
  return word[word.length - 1 - depth] ?? -1;
}

/**
 * Sorts the places of the words by their tokens from the last one on, by radix: words that are alike in their first
 * `depth` tokens are parted by the next one. Each token is read no more often than the parting needs, so that the time
 * grows with the number of tokens and not with comparisons of whole words.
 */
function sortedBackwards(words: readonly Int32Array[]): number[] {
  const places = words.map((_, place) => place);
  const alike: { first: number; end: number; depth: number }[] = [{ first: 0, end: places.length, depth: 0 }];
  for (let group = alike.pop(); group !== undefined; group = alike.pop()) {
    const { first, end } = group;
    let { depth } = group;
    const tokenOf = (place: number) => tokenAt(words[place]!, depth);
    // Skips the tokens that all of them have.
    while (end - first > 1 && hasOneToken(places, first, end, tokenOf)) {
      if (tokenOf(places[first]!) < 0) break;
      depth++;
    }
    if (end - first < 2 || hasOneToken(places, first, end, tokenOf)) continue;
    const sorted = places.slice(first, end).sort((a, b) => tokenOf(a) - tokenOf(b));
    for (const [i, place] of sorted.entries()) places[first + i] = place;
    for (let start = first, i = first + 1; i <= end; i++) {
      if (i < end && tokenOf(places[i]!) === tokenOf(places[start]!)) continue;
      alike.push({ first: start, end: i, depth });
      start = i;
    }
  }
  return places;
}

function hasOneToken(
  places: readonly number[],
  first: number,
  end: number,
  tokenOf: (place: number) => number,
): boolean {
  const token = tokenOf(places[first]!);
  for (let i = first + 1; i < end; i++) if (tokenOf(places[i]!) !== token) return false;
  return true;
}
