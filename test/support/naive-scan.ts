/** What one head of a selective scan has of a token. */
export interface ScanToken {
  x: ArrayLike<number>;
  b: ArrayLike<number>;
  c: ArrayLike<number>;
  step: number;
}

export interface ScanNumbers {
  /** Less than 0. */
  rate: number;
  stepBias: number;
  skip: number;
  leastStep: number;
  mostStep: number | null;
}

/**
 * One head of a selective scan over a sequence, in double precision: see the op selectiveScan in network/plan.ts.
 * @param state [stateDim x headDim], which it changes
 * @returns the outputs [headDim] of each token
 */
export function naiveScan(
  tokens: readonly ScanToken[],
  { rate, stepBias, skip, leastStep, mostStep }: ScanNumbers,
  state: Float64Array,
): number[][] {
  return tokens.map(({ x, b, c, step: given }) => {
    const input = given + stepBias;
    const softplus = input > 30 ? input : Math.log1p(Math.exp(input));
    const step = Math.min(Math.max(softplus, leastStep), mostStep ?? Number.POSITIVE_INFINITY);
    return Array.from(x, (value, column) => {
      let sum = skip * value;
      for (let n = 0; n < b.length; n++) {
        const at = n * x.length + column;
        state[at] = state[at]! * Math.exp(rate * step) + b[n]! * value * step;
        sum += state[at]! * c[n]!;
      }
      return sum;
    });
  });
}
