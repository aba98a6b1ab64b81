/**
 * Tokens of many blocks in one array, each block at a place of its own. A free place is used again for
 * another block.
 *
 *   tokensPerBlock 4      | a b c d | e f g h | . . . . | i j k l |       place 2 is free
 */
export class BlockTokens {
  readonly #size: number;
  #tokens: Int32Array<ArrayBuffer>;
  /** Places that were taken once, and those of them that are free. */
  #numPlaces = 0;
  #free: number[] = [];

  constructor(tokensPerBlock: number) {
    this.#size = tokensPerBlock;
    this.#tokens = new Int32Array(0);
  }

  /** Copies tokens[start, start + tokensPerBlock) and returns their place. */
  add(tokens: Int32Array, start: number): number {
    const size = this.#size;
    const place = this.#free.pop() ?? this.#numPlaces++;
    const offset = place * size;
    if (offset === this.#tokens.length) this.#grow();
    for (let index = 0; index < size; index += 1) this.#tokens[offset + index] = tokens[start + index]!;
    return place;
  }

  /** A view [tokensPerBlock], good until the next call of `add`. */
  at(place: number): Int32Array {
    return this.#tokens.subarray(place * this.#size, (place + 1) * this.#size);
  }

  remove(place: number): void {
    this.#free.push(place);
  }

  clear(): void {
    this.#tokens = new Int32Array(0);
    this.#numPlaces = 0;
    this.#free = [];
  }

  /** Number of leading tokens, at most `length`, that are those from tokens[start] on. */
  commonLength(place: number, tokens: Int32Array, start: number, length: number): number {
    const block = this.#tokens;
    const offset = place * this.#size;
    let common = 0;
    while (common < length && block[offset + common] === tokens[start + common]) common += 1;
    return common;
  }

  /** True if the first `length` tokens come before tokens[start, start + length). */
  isLess(place: number, tokens: Int32Array, start: number, length: number): boolean {
    const common = this.commonLength(place, tokens, start, length);
    return common < length && this.#tokens[place * this.#size + common]! < tokens[start + common]!;
  }

  /** By halves, so that little is left empty. */
  #grow(): void {
    const places = this.#tokens.length / this.#size;
    const longer = new Int32Array(this.#size * (places + Math.max(8, places >> 1)));
    longer.set(this.#tokens);
    this.#tokens = longer;
  }
}
