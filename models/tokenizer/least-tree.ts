/** A value greater than any that is kept, which stands for none. */
export const NO_VALUE = 0x7fffffff;

/** Bits of a node's number of values: sixteen values take one line of the processor's cache. */
const WIDTH_BITS = 4;
const WIDTH = 2 ** WIDTH_BITS;

/**
 * A number for each of many places, and the place of the least. Each sixteen numbers have their least in the level
 * above, up to a single one: 4.3 bytes a place, however often numbers change, where a queue would keep outdated ones.
 */
export class LeastTree {
  /** Levels from the places up: each has the least of each sixteen numbers of the level before. */
  readonly #levels: Int32Array[] = [];

  /** Starts with NO_VALUE at all places. @param numPlaces 1 or more */
  constructor(numPlaces: number) {
    for (let length = numPlaces; ; length = Math.ceil(length / WIDTH)) {
      this.#levels.push(new Int32Array(length).fill(NO_VALUE));
      if (length === 1) return;
    }
  }

  /** Sets one place without updating the levels above: `build` must follow. */
  setUnbuilt(place: number, value: number): void {
    this.#levels[0]![place] = value;
  }

  /** Computes all levels above the places. */
  build(): void {
    for (let height = 1; height < this.#levels.length; height++) {
      const level = this.#levels[height]!;
      for (let node = 0; node < level.length; node++) level[node] = this.#leastBelow(height, node);
    }
  }

  set(place: number, value: number): void {
    const places = this.#levels[0]!;
    if (places[place] === value) return;
    places[place] = value;
    let node = place;
    for (let height = 1; height < this.#levels.length; height++) {
      node >>>= WIDTH_BITS;
      const least = this.#leastBelow(height, node);
      const level = this.#levels[height]!;
      if (level[node] === least) return;
      level[node] = least;
    }
  }

  /** First place with the least value; -1 where none has a value. */
  first(): number {
    let height = this.#levels.length - 1;
    const least = this.#levels[height]![0]!;
    if (least === NO_VALUE) return -1;
    let node = 0;
    while (height > 0) {
      const below = this.#levels[--height]!;
      node <<= WIDTH_BITS;
      while (below[node] !== least) node++;
    }
    return node;
  }

  #leastBelow(height: number, node: number): number {
    const below = this.#levels[height - 1]!;
    const start = node << WIDTH_BITS;
    const end = Math.min(start + WIDTH, below.length);
    let least = NO_VALUE;
    for (let i = start; i < end; i++) if (below[i]! < least) least = below[i]!;
    return least;
  }
}
