import { Random } from '../../support/random.js';

/** Numbers from 0 (included) to 1 (excluded), the same for the same seed. */
export function seededRandom(seed: number): () => number {
  const random = new Random(seed);
  return () => random.uniform();
}
