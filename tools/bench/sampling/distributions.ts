import { Random } from '../../support/random.js';

export interface Distribution {
  name: string;
  /** [rows x vocabSize] */
  logits(rows: number, vocabSize: number): Float32Array;
}

/** Distributions that tokens are drawn from, from the sharpest to the flattest. */
export const DISTRIBUTIONS: readonly Distribution[] = [
  {
    // Logits as language models have them: some tokens likely, most of the vocabulary hardly; about 20 tokens hold half the mass.
    name: 'as of a language model',
    logits: (rows, vocabSize) =>
      perRow(rows, vocabSize, (random, rank) => -1.2 * Math.log(rank + 3) + 0.3 * random.normal()),
  },
  {
    // Logits as a temperature far above 1 leaves them: nearly every token is as likely as any other.
    name: 'flat',
    logits: (rows, vocabSize) => perRow(rows, vocabSize, (random) => 0.1 * random.normal()),
  },
];

/** Values by rank, at tokens in an order of the row's own. */
function perRow(
  rows: number,
  vocabSize: number,
  value: (random: Random, rank: number) => number,
): Float32Array {
  const logits = new Float32Array(rows * vocabSize);
  for (let row = 0; row < rows; row++) {
    const random = new Random(row + 1);
    // It has no divisor in common with the size of the vocabulary, so each token is reached once.
    const step = 7919;
    for (let rank = 0; rank < vocabSize; rank++) {
      logits[row * vocabSize + ((rank * step + row) % vocabSize)] = value(random, rank);
    }
  }
  return logits;
}
