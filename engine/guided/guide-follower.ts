import { Automaton } from './automaton.js';
import { forcedBehind } from './forced-tokens.js';
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
/** Longest that looking ahead may take, of all rows of a step. */
const LOOK_AHEAD_MS = 5;
/** Numbers of a mask's entry in front of its tokens. */
const ENTRY_HEAD = 6;

interface FollowedSequence {
  matcher: GrammarMatcher;
  endTokens: Int32Array;
  /** Where each token has led, from the start on: entry n is behind n tokens. */
  places: Places[];
}

/** What is to be said of the token at a position of a sequence. */
interface LookAhead {
  sequence: number;
  position: number;
  matcher: GrammarMatcher;
  places: Places;
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

  /** Replies as soon as there is something to reply. */
  handle(request: GuideRequest, reply: (reply: GuideReply) => void): void {
    switch (request.type) {
      case 'open':
        reply(this.#open(request));
        break;
      case 'mask': {
        const ahead: LookAhead[] = [];
        reply(this.#mask(request, ahead));
        const entries = this.#lookAhead(ahead);
        if (entries.length > 0)
          reply({ type: 'forced', step: request.step, entries: Int32Array.from(entries) });
        break;
      }
      case 'close':
        for (const sequence of request.sequences) this.#sequences.delete(sequence);
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

  #limited<T>(matcher: GrammarMatcher, compute: () => T, timeoutMs = this.#timeoutMs): T {
    matcher.limitUntil(performance.now() + timeoutMs);
    try {
      return compute();
    } finally {
      matcher.limitUntil(Number.POSITIVE_INFINITY);
    }
  }

  /** Writes masks; what may be looked ahead from goes into `ahead`. */
  #mask({ step, words, entries }: Extract<GuideRequest, { type: 'mask' }>, ahead: LookAhead[]): GuideReply {
    const width = wordsOfMask(this.#trie.vocabSize);
    const failures: { sequence: number; error: string }[] = [];
    for (let i = 0; i < entries.length; ) {
      const head = entries.subarray(i, i + ENTRY_HEAD) as unknown as number[];
      const [sequence, row, position, count, draftLength, jumps] = head as Six;
      const tokens = entries.subarray(i + ENTRY_HEAD, i + ENTRY_HEAD + count);
      const draft = entries.subarray(i + ENTRY_HEAD + count, i + ENTRY_HEAD + count + draftLength);
      i += ENTRY_HEAD + count + draftLength;
      const target = (first: number) => new Int32Array(words, 4 * width * (row + first), width);
      const followed = this.#sequences.get(sequence)!;
      const { matcher } = followed;
      const note = (places: Places, behind: number) =>
        jumps === 1 && ahead.push({ sequence, position: position + count + behind, matcher, places });
      try {
        const places = this.#maskNewest(followed, position, tokens, target(0));
        note(places, 0);
        this.#maskDraft(followed, places, draft, target, note);
      } catch (error) {
        failures.push({ sequence, error: error instanceof Error ? error.message : String(error) });
      }
    }
    return { type: 'masked', step, failures };
  }

  /** Follows the tokens at `position`, and writes the mask behind them. Returns where they led. */
  #maskNewest(followed: FollowedSequence, position: number, tokens: Int32Array, target: Int32Array): Places {
    const { matcher, places } = followed;
    // What was generated beyond this place is generated again.
    places.length = position + 1;
    return this.#limited(matcher, () => {
      for (const token of tokens) {
        const next = this.#follow(matcher, places.at(-1)!, token);
        if (next === null) throw new Error(`Token ${token} does not follow the guide.`);
        places.push(next);
      }
      this.#write(followed, places.at(-1)!, target);
      return places.at(-1)!;
    });
  }

  /**
   * Masks behind the tokens of a draft, one after the other. A draft is nobody's answer yet: behind a token that does not
   * follow the guide, which is not drawn in front of it, no token fits.
   */
  #maskDraft(
    followed: FollowedSequence,
    newest: Places,
    draft: Int32Array,
    target: (row: number) => Int32Array,
    note: (places: Places, behind: number) => void,
  ): void {
    let places: Places | null = newest;
    for (const [i, token] of draft.entries()) {
      const { matcher } = followed;
      const before: Places | null = places;
      places = before && this.#limited(matcher, () => this.#follow(matcher, before, token));
      if (places === null) {
        target(i + 1).fill(0);
        continue;
      }
      const here: Places = places;
      this.#limited(matcher, () => this.#write(followed, here, target(i + 1)));
      note(here, i + 1);
    }
  }

  #follow(matcher: GrammarMatcher, places: Places, token: number): Places | null {
    const bytes = this.#trie.bytesOf(token);
    return bytes && matcher.follow(places, bytes);
  }

  #write({ matcher, endTokens }: FollowedSequence, places: Places, target: Int32Array): void {
    target.set(tokenMask(matcher, this.#trie, places));
    for (const token of endTokens) {
      const bit = 1 << (token & 31);
      if (places.isAccepting) target[token >> 5]! |= bit;
      else target[token >> 5]! &= ~bit;
    }
  }

  /** The entries of a `forced` reply. */
  #lookAhead(ahead: readonly LookAhead[]): number[] {
    const entries: number[] = [];
    const untilMs = performance.now() + LOOK_AHEAD_MS;
    for (const { sequence, position, matcher, places } of ahead) {
      const forced = this.#forcedBehind(matcher, places, untilMs);
      for (let i = 0; i < forced.length; ) {
        const end = i + 2 + forced[i + 1]!;
        entries.push(sequence, position, ...forced.subarray(i, end));
        i = end;
      }
    }
    return entries;
  }

  /** Nothing where it takes too long or cannot be followed: then it is asked again, and fails, when it is the answer's turn. */
  #forcedBehind(matcher: GrammarMatcher, places: Places, untilMs: number): Int32Array {
    try {
      const look = () => forcedBehind(matcher, this.#trie, places);
      return this.#limited(matcher, look, untilMs - performance.now());
    } catch (error) {
      if (!(error instanceof GuideError)) throw error;
      return NOTHING;
    }
  }
}

type Six = [number, number, number, number, number, number];
const NOTHING = new Int32Array(0);
