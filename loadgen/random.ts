/** Seeded random numbers (mulberry32), equal for a seed and a stream on every machine. */
export class Random {
  #state: number;

  /** @param streams name independent sequences of one seed, such as those of arrivals and of the 17th sample */
  constructor(seed: number, ...streams: number[]) {
    this.#state = seed | 0;
    for (const stream of streams) this.#state = scramble(this.#state ^ scramble((stream + 0x9e3779b9) | 0));
  }

  /** Uniform value in [0, 1). */
  uniform(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return (scramble(this.#state) >>> 0) / 2 ** 32;
  }

  /** Uniform whole number from 0 to end - 1. */
  below(end: number): number {
    return Math.floor(this.uniform() * end);
  }

  /** Normal value of mean 0 and variance 1. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Exponential value of mean 1. */
  exponential(): number {
    return -Math.log(1 - this.uniform());
  }

  /** Value of a gamma distribution with mean 1: Marsaglia and Tsang (2000), below shape 1 with their boost. */
  gamma(shape: number): number {
    if (shape < 1) {
      const boost = (1 - this.uniform()) ** (1 / shape);
      return (this.#gammaAbove(shape + 1) * boost) / shape;
    }
    return this.#gammaAbove(shape) / shape;
  }

  #gammaAbove(shape: number): number {
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - this.uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }
}

function scramble(value: number): number {
  let t = Math.imul(value ^ (value >>> 15), 1 | value);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return t ^ (t >>> 14);
}
