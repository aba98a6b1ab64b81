import type { GrammarMatcher } from './grammar-matcher.js';
import type { GuideRequest } from './guide-messages.js';
import { wordsOfMask } from './guide-messages.js';
import type { Places } from './places.js';
import type { TokenTrie } from './token-trie.js';

/** State of one sequence in its guide. */
export interface FollowedSequence {
  /** Places of the grammar after the tokens so far. */
  places: Places;
  numTokens: number;
  /** Cost of following the sequence so far, in places. */
  cost: number;
}

/** A request's guide, and the places that its sequences have reached in it. */
export class FollowedGuide {
  readonly first: number;
  readonly count: number;
  readonly key: string;
  readonly matcher: GrammarMatcher;
  readonly trie: TokenTrie;
  /** Jobs under way for this guide. */
  readonly jobs = new Set<{ readonly standingAt: Places }>();
  readonly #endTokens: Int32Array;
  readonly #masks: SharedArrayBuffer;
  readonly #sequences: FollowedSequence[];

  constructor(
    { first, count, endTokens, masks }: Extract<GuideRequest, { type: 'open' }>,
    key: string,
    matcher: GrammarMatcher,
    trie: TokenTrie,
  ) {
    this.first = first;
    this.count = count;
    this.key = key;
    this.matcher = matcher;
    this.trie = trie;
    this.#endTokens = endTokens;
    this.#masks = masks;
    this.#sequences = Array.from({ length: count }, () => this.beginning());
    matcher.users.add(this);
  }

  beginning(): FollowedSequence {
    return { places: this.matcher.start, numTokens: 0, cost: 0 };
  }

  at(sequence: number): FollowedSequence {
    return this.#sequences[sequence - this.first]!;
  }

  moveTo(sequence: number, place: FollowedSequence): void {
    this.#sequences[sequence - this.first] = place;
  }

  /** Places at which its sequences, and the jobs for their masks, stand. */
  get standingAt(): Places[] {
    return [...this.#sequences.map(({ places }) => places), ...[...this.jobs].map((job) => job.standingAt)];
  }

  /** Writes the finished mask of these places to a row; the request's ending tokens are allowed if the text may end. */
  write({ mask, isAccepting }: Places, row: number): void {
    const target = this.#row(row);
    target.set(mask!);
    for (const token of this.#endTokens) {
      const bit = 1 << (token & 31);
      if (isAccepting) target[token >> 5]! |= bit;
      else target[token >> 5]! &= ~bit;
    }
  }

  /** Writes a mask that allows no token. */
  writeNone(row: number): void {
    this.#row(row).fill(0);
  }

  #row(row: number): Int32Array {
    const width = wordsOfMask(this.trie.vocabSize);
    return new Int32Array(this.#masks, 4 * width * row, width);
  }
}
