import type { GrammarMatcher } from './grammar-matcher.js';

/**
 * Most bytes of sets of places and masks that one guide may keep when its next mask is made; that one mask may add as much
 * again.
 */
export const MAX_SETS_OF_GUIDE = 8 * 2 ** 20;
/** Most bytes that all kept guides take: those not in use with their automata, the others without. */
const MAX_KEPT_BYTES = 64 * 2 ** 20;

interface Kept {
  matcher: GrammarMatcher;
  /** Number of requests that follow it now. */
  users: number;
}

/** Automata of guides with everything found in them, for all requests that follow the same guide, now or later. */
export class KeptMatchers {
  /** Matchers by type and text of their guide, the last used one at the end. */
  readonly #kept = new Map<string, Kept>();
  readonly #maxBytes: number;

  constructor(maxBytes = MAX_KEPT_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Takes a kept matcher for one more request; null if there is none. */
  take(key: string): GrammarMatcher | null {
    const kept = this.#kept.get(key);
    if (kept === undefined) return null;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    kept.users++;
    return kept.matcher;
  }

  add(key: string, matcher: GrammarMatcher): void {
    this.#kept.set(key, { matcher, users: 1 });
  }

  /** Notes that one request fewer follows it. True: it was the last one. */
  release(key: string): boolean {
    const kept = this.#kept.get(key);
    return kept !== undefined && --kept.users === 0;
  }

  /**
   * Keeps the total below its limit, beginning with the guide used longest ago: a guide that no request
   * follows is removed, of others everything that can be found again.
   */
  trim(): void {
    let total = this.size;
    for (const [key, kept] of this.#kept) {
      if (total <= this.#maxBytes) return;
      const { matcher, users } = kept;
      if (matcher.walk !== null) continue;
      const before = sizeOf(key, kept);
      if (users === 0) this.#kept.delete(key);
      else matcher.forget();
      total -= users === 0 ? before : before - sizeOf(key, kept);
    }
  }

  /** Bytes of memory that it takes, roughly; automata in use count as their requests'. */
  get size(): number {
    let total = 0;
    for (const [key, kept] of this.#kept) total += sizeOf(key, kept);
    return total;
  }
}

function sizeOf(key: string, { matcher, users }: Kept): number {
  const { sizeOfSets, sizeOfAutomaton } = matcher;
  return sizeOfSets + (users === 0 ? sizeOfAutomaton + 2 * key.length + BYTES_OF_KEPT : 0);
}

const BYTES_OF_KEPT = 1000;
