import { GuideBudgetError, MAX_MASK_COST, tooCostlyMask } from './guide-budget.js';
import type { Places, Step } from './places.js';
import type { TokenTrie } from './token-trie.js';

/** Nodes of a vocabulary's trie that take as long as a place of a grammar: a node is looked up, a place is made. */
const NODES_OF_PLACE = 4;
/** Number of nodes after which the work done is counted. */
const NODES_OF_PIECE = 2048;

let numWalks = 0;

/** The grammar that a walk follows: a GrammarMatcher. */
interface WalkedGrammar {
  /** The step of a byte from these places; null: the byte does not fit. */
  step(places: Places, byte: number): Step | null;
  /** Counts bytes that are stored along with its places. */
  noteBytes(bytes: number): void;
}

/**
 * A walk through a vocabulary's trie that makes the mask of some places: the tokens that fit after a text. It
 * can be done in pieces. Its cost is counted as if nothing had been known before, each step once, so that it
 * does not depend on other requests; for this, only one walk at a time goes through the places of a grammar.
 */
export class MaskWalk {
  readonly places: Places;
  readonly #matcher: WalkedGrammar;
  readonly #trie: TokenTrie;
  readonly #path: Places[];
  readonly #mask: Int32Array;
  readonly #maxCost: number;
  readonly #number = ++numWalks;
  #node = 0;
  #cost = 0;

  constructor(matcher: WalkedGrammar, trie: TokenTrie, places: Places, maxCost = MAX_MASK_COST) {
    this.#maxCost = maxCost;
    this.#matcher = matcher;
    this.#trie = trie;
    this.places = places;
    this.#path = new Array<Places>(trie.maxDepth + 1);
    this.#path[0] = places;
    this.#mask = new Int32Array(Math.ceil(trie.vocabSize / 32));
  }

  /**
   * Continues until it has done work worth `fuel` places, or has reached its end and stored the mask in the places. Returns
   * the rest of `fuel`; 0 or less if it is not at its end. @throws GuideBudgetError, which is stored as well
   */
  advance(fuel: number): number {
    if (this.places.failure !== null) throw this.places.failure;
    try {
      let left = fuel;
      while (left > 0 && this.places.mask === null) left -= this.#goOn(left);
      return this.places.mask === null ? Math.min(left, 0) : Math.max(left, 1);
    } catch (error) {
      if (error instanceof GuideBudgetError) this.places.failure = error;
      throw error;
    }
  }

  /** Visits up to NODES_OF_PIECE nodes, fewer if steps cost more than `fuel`. Returns the work done. */
  #goOn(fuel: number): number {
    const { numNodes, bytes, depths, skips, tokens, nextSame } = this.#trie;
    const path = this.#path;
    const mask = this.#mask;
    const before = this.#cost;
    let node = this.#node;
    let numVisited = 0;
    for (; node < numNodes && numVisited < NODES_OF_PIECE && this.#cost - before < fuel; numVisited++) {
      const depth = depths[node]!;
      const here = path[depth]!;
      const byte = bytes[node]!;
      // Most steps are known: this look-up takes most of a mask's time.
      const known = here.classes === null ? undefined : here.steps[here.classes.classOf[byte]!];
      const step = known === undefined ? this.#matcher.step(here, byte) : known;
      if (step === null) {
        node = skips[node]!;
        continue;
      }
      if (step.walk !== this.#number) {
        step.walk = this.#number;
        this.#cost += step.cost;
        if (this.#cost > this.#maxCost) throw tooCostlyMask(this.#maxCost);
      }
      for (let token = tokens[node]!; token >= 0; token = nextSame[token]!) {
        mask[token >> 5]! |= 1 << (token & 31);
      }
      path[depth + 1] = step.places;
      node++;
    }
    this.#node = node;
    if (node >= numNodes) {
      this.places.mask = mask;
      this.#matcher.noteBytes(mask.byteLength + BYTES_OF_ARRAY);
    }
    return this.#cost - before + Math.ceil(numVisited / NODES_OF_PLACE);
  }
}

const BYTES_OF_ARRAY = 120;

/** Makes the mask at once. @throws GuideBudgetError */
export function tokenMask(matcher: WalkedGrammar, trie: TokenTrie, places: Places): Int32Array {
  if (places.mask === null) new MaskWalk(matcher, trie, places).advance(Number.POSITIVE_INFINITY);
  return places.mask!;
}
