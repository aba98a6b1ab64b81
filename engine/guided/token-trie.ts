/**
 * The tokens of a vocabulary by their bytes, as a trie that is written out in depth-first order:
 *
 *   tokens  "a" 5   "ab" 7   "b" 9        node     0 a   1 b   2 b
 *                                         depth    0     1     0
 *                                         token    5     7     9
 *                                         skip     2     2     3      the first node after its subtree
 *
 * Tokens without bytes are left out: ids that the vocabulary does not use.
 */
export class TokenTrie {
  readonly numNodes: number;
  readonly bytes: Uint8Array;
  readonly depths: Uint16Array;
  readonly skips: Int32Array;
  /** Token that ends at each node; -1: none. */
  readonly tokens: Int32Array;
  /** The next token with the same bytes; -1: none. */
  readonly nextSame: Int32Array;
  readonly maxDepth: number;
  readonly #bytesOf: readonly (Uint8Array | null)[];

  /** `bytesOf[token]`: null or empty for tokens that no guide may choose. */
  constructor(bytesOf: readonly (Uint8Array | null)[]) {
    this.#bytesOf = bytesOf;
    const order = [...bytesOf.keys()].filter((token) => (bytesOf[token]?.length ?? 0) > 0);
    order.sort((a, b) => compare(bytesOf[a]!, bytesOf[b]!) || a - b);
    const total = order.reduce((sum, token) => sum + bytesOf[token]!.length, 0);
    const bytes = new Uint8Array(total);
    const depths = new Uint16Array(total);
    const skips = new Int32Array(total);
    const tokens = new Int32Array(total).fill(-1);
    this.nextSame = new Int32Array(bytesOf.length).fill(-1);
    let numNodes = 0;
    let maxDepth = 0;
    const path: number[] = [];
    const close = (depth: number): void => {
      while (path.length > depth) skips[path.pop()!] = numNodes;
    };
    let before: Uint8Array = new Uint8Array(0);
    for (const token of order) {
      const word = bytesOf[token]!;
      let common = 0;
      while (common < word.length && common < before.length && word[common] === before[common]) common++;
      close(common);
      for (let depth = common; depth < word.length; depth++) {
        bytes[numNodes] = word[depth]!;
        depths[numNodes] = depth;
        path.push(numNodes++);
      }
      const node = path.at(-1)!;
      this.nextSame[token] = tokens[node]!;
      tokens[node] = token;
      maxDepth = Math.max(maxDepth, word.length);
      before = word;
    }
    close(0);
    this.numNodes = numNodes;
    this.bytes = bytes.slice(0, numNodes);
    this.depths = depths.slice(0, numNodes);
    this.skips = skips.slice(0, numNodes);
    this.tokens = tokens.slice(0, numNodes);
    this.maxDepth = maxDepth;
  }

  get vocabSize(): number {
    return this.#bytesOf.length;
  }

  /**
   * The longest token that the bytes from `start` on begin with, -1: none. `isCut`: a longer token begins with all these
   * bytes and continues with a byte that `goesOn` accepts.
   */
  longestIn(
    bytes: Uint8Array,
    start: number,
    goesOn: (byte: number) => boolean,
  ): { token: number; length: number; isCut: boolean } {
    let token = -1;
    let length = 0;
    let first = 0;
    let end = this.numNodes;
    for (let place = start; place < bytes.length; place++) {
      const node = this.#child(first, end, bytes[place]!);
      if (node < 0) return { token, length, isCut: false };
      if (this.tokens[node]! >= 0) {
        token = this.tokens[node]!;
        length = place + 1 - start;
      }
      first = node + 1;
      end = this.skips[node]!;
    }
    let isCut = false;
    for (let node = first; node < end && !isCut; node = this.skips[node]!) {
      isCut = goesOn(this.bytes[node]!);
    }
    return { token, length, isCut };
  }

  /** The child node of this byte: siblings lie from `first` on, in front of `end`; -1: none. */
  #child(first: number, end: number, byte: number): number {
    let node = first;
    while (node < end && this.bytes[node]! < byte) node = this.skips[node]!;
    return node < end && this.bytes[node] === byte ? node : -1;
  }

  /** Bytes of a token; null if no guide may choose it. */
  bytesOf(token: number): Uint8Array | null {
    const bytes = this.#bytesOf[token] ?? null;
    return bytes === null || bytes.length === 0 ? null : bytes;
  }
}

function compare(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}
