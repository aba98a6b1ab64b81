/** What one head of the delta rule has of a token. */
export interface DeltaToken {
  q: ArrayLike<number>;
  k: ArrayLike<number>;
  v: ArrayLike<number>;
  b: number;
  a: number;
}

/**
 * One head of the gated delta rule over a sequence, in double precision: see the op gatedDelta in network/plan.ts.
 * @param state [keyDim x valueDim], which it changes
 * @returns the outputs [valueDim] of each token
 */
export function naiveDelta(
  tokens: readonly DeltaToken[],
  { decay, decayBias, epsilon }: { decay: number; decayBias: number; epsilon: number },
  state: Float64Array,
): number[][] {
  return tokens.map(({ q, k, v, b, a }) => {
    const [query, key] = [unit(q, epsilon), unit(k, epsilon)];
    const kept = Math.exp(-Math.exp(decay) * Math.log1p(Math.exp(a + decayBias)));
    const share = 1 / (1 + Math.exp(-b));
    return Array.from(v, (value, column) => {
      const at = (i: number) => i * v.length + column;
      let found = 0;
      for (const [i, factor] of key.entries()) {
        state[at(i)]! *= kept;
        found += state[at(i)]! * factor;
      }
      const change = (value - found) * share;
      let output = 0;
      for (const [i, factor] of key.entries()) {
        state[at(i)]! += factor * change;
        output += (state[at(i)]! * query[i]!) / Math.sqrt(key.length);
      }
      return output;
    });
  });
}

function unit(x: ArrayLike<number>, epsilon: number): number[] {
  const values = Array.from(x);
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) + epsilon);
  return values.map((value) => value / length);
}
