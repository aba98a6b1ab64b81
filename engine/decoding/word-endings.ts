/**
 * Which of many words a sequence ends with. The words are kept in the order of their tokens read from the last one on, so
 * that those which still fit are always a range of them:
 *
 *   words, backwards   b         tokens  ... x a b
 *                      b a                        b: the words 0 to 2     b a: 1 and 2     b a x: 2
 *                      b a x
 *
 * A look-up takes a step for each token of the longest word that fits, and a search where the range gets smaller: words
 * that are long, and many that begin or end alike, cost no more for being so.
 */
export class WordEndings {
  readonly #words: readonly Int32Array[];
  /** Places in the list that was given, in the order above. */
  readonly #places: readonly number[];

  /** `words`: none of them empty. */
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
      // Mostly all that still fit have the same token here.
      if (tokenAt(words[first]!, depth) !== token) first = this.#boundOf(token, depth, first, end);
      if (first < end && tokenAt(words[end - 1]!, depth) !== token)
        end = this.#boundOf(token + 1, depth, first, end);
      for (; first < end && words[first]!.length === depth + 1; first++) found(this.#places[first]!);
    }
  }

  /** The first of words [first, end) whose token at this depth is not less. */
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

/** Counted from the last one; -1 in front of the first. */
function tokenAt(word: Int32Array, depth: number): number {
  return word[word.length - 1 - depth] ?? -1;
}

/**
 * The places of the words in the order of their tokens from the last one on, by radix: words that are alike in their first
 * `depth` tokens are parted by the next one. No token is looked at more often than the parting takes, so that the time
 * follows the number of tokens and not of comparisons of whole words.
 */
function sortedBackwards(words: readonly Int32Array[]): number[] {
  const places = words.map((_, place) => place);
  const alike: { first: number; end: number; depth: number }[] = [{ first: 0, end: places.length, depth: 0 }];
  for (let group = alike.pop(); group !== undefined; group = alike.pop()) {
    const { first, end } = group;
    let { depth } = group;
    const tokenOf = (place: number) => tokenAt(words[place]!, depth);
    // The tokens that all of them have.
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
