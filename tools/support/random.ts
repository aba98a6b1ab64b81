/** Small seeded generator (mulberry32): the same numbers on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A uniform value in [0, 1). */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number in 0 .. end - 1. */
  below(end: number): number {
    return Math.floor(this.uniform() * end);
  }

  /** `length` ids of a vocabulary. */
  tokens(length: number, vocabSize: number): number[] {
    return Array.from({ length }, () => this.below(vocabSize));
  }

  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  /** 0 .. count - 1 in random order. */
  permutation(count: number): number[] {
    const order = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return order;
  }
}

/** Numbers from 0 (included) to 1 (excluded), the same for the same seed. */
export function seededRandom(seed: number): () => number {
  const random = new Random(seed);
  return () => random.uniform();
}
