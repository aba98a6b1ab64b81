/** Most places that are compared for one proposal, the latest first. */
const MAX_PLACES = 64;
/** Longest match that is distinguished: longer ones are treated alike. */
const MAX_MATCH = 32;
const BUCKETS = 4096;
const NOWHERE = -1;

export interface Proposal {
  /** Number of tokens proposed; 0: the sequence's last tokens occurred nowhere before. */
  length: number;
  /** Number of last tokens that also occurred before the proposed ones. */
  matchLength: number;
}

/**
 * Prompt lookup: finds an earlier occurrence of a sequence's last tokens, and proposes the tokens that followed there.
 * In answers that repeat their prompt (edited code, summaries, extracted data) these often come next.
 *
 *   tokens     the cat sat . the dog ran . the cat
 *                  ^^^ ^^^ ^             |---------|     the last 2 stood at the beginning
 *   proposed   sat . the ...                             what followed; the longest match wins, then the latest
 *
 * If those tokens run into the end of the sequence, the proposal continues with itself: a b a b -> a b a b a b.
 *
 * If the last two tokens occurred nowhere before, the last one alone is looked up.
 */
export class NgramIndex {
  readonly #pairs = new PlaceChains(2);
  readonly #singles = new PlaceChains(1);

  /**
   * Writes at most `target.length` tokens that may follow tokens[0 .. length) into target. Tokens of earlier calls must
   * be unchanged; new ones are indexed now.
   */
  propose(tokens: Int32Array, length: number, target: Int32Array): Proposal {
    this.#pairs.index(tokens, length);
    this.#singles.index(tokens, length);
    const last = length - 1;
    let best = NOWHERE;
    let matchLength = 0;
    for (const chains of [this.#pairs, this.#singles]) {
      let place = chains.before(last);
      for (let looked = 0; place !== NOWHERE && looked < MAX_PLACES && matchLength < MAX_MATCH; looked++) {
        const match = commonEnding(tokens, place, last);
        if (match > matchLength) {
          best = place;
          matchLength = match;
        }
        place = chains.before(place);
      }
      if (best !== NOWHERE) break;
    }
    if (best === NOWHERE) return { length: 0, matchLength: 0 };
    for (let i = 0; i < target.length; i++) {
      const from = best + 1 + i;
      target[i] = from < length ? tokens[from]! : target[from - length]!;
    }
    return { length: target.length, matchLength };
  }
}

/**
 * The places of n-grams of one length.
 *
 *   latest     hash of the n-gram -> the latest place where it ends     places of one bucket are a chain, from late
 *   previous   place -> the place before it in the same bucket          to early; other n-grams in it are passed over
 */
class PlaceChains {
  readonly #ngram: number;
  readonly #latest = new Int32Array(BUCKETS).fill(NOWHERE);
  #previous = new Int32Array(64);
  /** Number of tokens that are indexed. */
  #length = 0;

  constructor(ngram: 1 | 2) {
    this.#ngram = ngram;
  }

  before(place: number): number {
    return place < this.#ngram - 1 ? NOWHERE : this.#previous[place]!;
  }

  index(tokens: Int32Array, length: number): void {
    if (length > this.#previous.length) {
      const larger = new Int32Array(2 * length);
      larger.set(this.#previous);
      this.#previous = larger;
    }
    for (let place = Math.max(this.#length, this.#ngram - 1); place < length; place++) {
      const bucket = bucketOf(this.#ngram === 1 ? 0 : tokens[place - 1]!, tokens[place]!);
      this.#previous[place] = this.#latest[bucket]!;
      this.#latest[bucket] = place;
    }
    this.#length = Math.max(this.#length, length);
  }
}

function bucketOf(first: number, second: number): number {
  const hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
  return (hash ^ (hash >>> 15)) & (BUCKETS - 1);
}

/** Number of tokens ending at `early` that equal those ending at `late`, at most MAX_MATCH. */
function commonEnding(tokens: Int32Array, early: number, late: number): number {
  let count = 0;
  while (count < MAX_MATCH && count <= early && tokens[early - count] === tokens[late - count]) count++;
  return count;
}
