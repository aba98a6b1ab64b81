import { Automaton } from './automaton.js';
import { GuideError } from './grammar.js';
import { GrammarMatcher, type Places } from './grammar-matcher.js';
import { type Guide, guideGrammar } from './guide.js';
import { type GuideReply, type GuideRequest, wordsOfMask } from './guide-messages.js';
import { tokenMask } from './token-mask.js';
import type { TokenTrie } from './token-trie.js';

/** Guides whose automata are kept for later requests. */
const MAX_KEPT = 32;
/** Longest that the mask of one row may take. */
const MATCH_TIMEOUT_MS = 2000;

interface FollowedSequence {
  matcher: GrammarMatcher;
  endTokens: Int32Array;
  /** Where each token has led, from the start on: entry n is behind n tokens. */
  places: Places[];
}

/** Follows the guides of sequences token by token, and says which tokens may come next. Knows nothing of threads. */
export class GuideFollower {
  readonly #trie: TokenTrie;
  readonly #timeoutMs: number;
  readonly #sequences = new Map<number, FollowedSequence>();
  /** By type and text of the guide, the one used last at the end. */
  readonly #kept = new Map<string, GrammarMatcher>();

  constructor(trie: TokenTrie, timeoutMs = MATCH_TIMEOUT_MS) {
    this.#trie = trie;
    this.#timeoutMs = timeoutMs;
  }

  /** The reply; null where none is due. */
  handle(request: GuideRequest): GuideReply | null {
    switch (request.type) {
      case 'open':
        return this.#open(request);
      case 'mask':
        return this.#mask(request);
      case 'close':
        for (const sequence of request.sequences) this.#sequences.delete(sequence);
        return null;
    }
  }

  #open({ sequence, guide, endTokens }: Extract<GuideRequest, { type: 'open' }>): GuideReply {
    try {
      const matcher = this.#matcherOf(guide);
      this.#limited(matcher, () => tokenMask(matcher, this.#trie, matcher.start));
      this.#sequences.set(sequence, { matcher, endTokens, places: [matcher.start] });
      return { type: 'opened', sequence, error: '', isInvalid: false };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return { type: 'opened', sequence, error: error.message, isInvalid: error instanceof GuideError };
    }
  }

  #matcherOf(guide: Guide): GrammarMatcher {
    const key = `${guide.type} ${guide.guide}`;
    const kept = this.#kept.get(key);
    this.#kept.delete(key);
    const matcher = kept ?? new GrammarMatcher(new Automaton(guideGrammar(guide)));
    this.#kept.set(key, matcher);
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    return matcher;
  }

  #limited<T>(matcher: GrammarMatcher, compute: () => T): T {
    matcher.limitUntil(performance.now() + this.#timeoutMs);
    try {
      return compute();
    } finally {
      matcher.limitUntil(Number.POSITIVE_INFINITY);
    }
  }

  #mask({ step, words, entries }: Extract<GuideRequest, { type: 'mask' }>): GuideReply {
    const width = wordsOfMask(this.#trie.vocabSize);
    const failures: { sequence: number; error: string }[] = [];
    for (let i = 0; i < entries.length; ) {
      const [sequence, row, position, count] = entries.subarray(i, i + 4) as unknown as number[];
      const tokens = entries.subarray(i + 4, i + 4 + count!);
      i += 4 + count!;
      try {
        const target = new Int32Array(words, 4 * width * row!, width);
        this.#maskRow(this.#sequences.get(sequence!)!, position!, tokens, target);
      } catch (error) {
        failures.push({ sequence: sequence!, error: error instanceof Error ? error.message : String(error) });
      }
    }
    return { type: 'masked', step, failures };
  }

  #maskRow(followed: FollowedSequence, position: number, tokens: Int32Array, target: Int32Array): void {
    const { matcher, places, endTokens } = followed;
    // What was generated beyond this place is generated again.
    places.length = position + 1;
    const current = this.#limited(matcher, () => {
      for (const token of tokens) {
        const bytes = this.#trie.bytesOf(token);
        const next = bytes && matcher.follow(places.at(-1)!, bytes);
        if (next === null) throw new Error(`Token ${token} does not follow the guide.`);
        places.push(next);
      }
      target.set(tokenMask(matcher, this.#trie, places.at(-1)!));
      return places.at(-1)!;
    });
    for (const token of endTokens) {
      const bit = 1 << (token & 31);
      if (current.isAccepting) target[token >> 5]! |= bit;
      else target[token >> 5]! &= ~bit;
    }
  }
}
