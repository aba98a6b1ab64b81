import type { SamplingRow } from './sampling-rows.js';

/** Philox4x32-10 in plain integers. */
export function naivePhilox(counter: readonly number[], key: readonly number[]): number[] {
  const mask = 0xffffffffn;
  let [c0, c1, c2, c3] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
  let [k0, k1] = key.map(BigInt) as [bigint, bigint];
  for (let round = 0; round < 10; round++) {
    const a = 0xd2511f53n * c0;
    const b = 0xcd9e8d57n * c2;
    [c0, c1, c2, c3] = [(b >> 32n) ^ c1 ^ k0, b & mask, (a >> 32n) ^ c3 ^ k1, a & mask];
    k0 = (k0 + 0x9e3779b9n) & mask;
    k1 = (k1 + 0xbb67ae85n) & mask;
  }
  return [c0, c1, c2, c3].map(Number);
}

export function naiveUniform(seed: bigint, sequenceIndex: number, position: number): number {
  const key = [Number(seed & 0xffffffffn), Number(seed >> 32n)];
  const [high, low] = naivePhilox([sequenceIndex >>> 0, position >>> 0, 0, 0], key);
  return Number(((BigInt(high!) << 32n) | BigInt(low!)) >> 11n) / 2 ** 53;
}

/** Logits after mask, penalties and banned tokens, as Hugging Face and OpenAI define them. */
export function naivePenalties(logits: Float32Array, row: SamplingRow): Float64Array {
  const {
    prompt = [],
    generated = [],
    repetitionPenalty = 1,
    presencePenalty = 0,
    frequencyPenalty = 0,
  } = row;
  const allowed = new Set(row.allowed ?? logits.keys());
  const result = Float64Array.from(logits, (logit, token) => (allowed.has(token) ? logit : -Infinity));
  for (const token of new Set([...prompt, ...generated])) {
    const logit = result[token]!;
    result[token] = logit < 0 ? logit * repetitionPenalty : logit / repetitionPenalty;
  }
  for (const token of new Set(generated)) {
    const count = generated.filter((other) => other === token).length;
    result[token]! -= frequencyPenalty * count + presencePenalty;
  }
  for (const token of row.banned ?? []) result[token] = -Infinity;
  return result;
}

/** Tokens by logit, greatest first, equal ones by id. */
export function sortedTokens(logits: Float64Array): number[] {
  return Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
}

/** Probabilities of the tokens that the filters keep, in ascending id, by a full sort. */
export function naiveDistribution(logits: Float32Array, row: SamplingRow): Map<number, number> {
  const penalised = naivePenalties(logits, row);
  const sorted = sortedTokens(penalised);
  const { temperature = 0, topK = 0, topP = 1, minP = 0 } = row;
  if (temperature === 0) return new Map([[sorted[0]!, 1]]);
  const maximum = penalised[sorted[0]!]!;
  const weight = (token: number) => Math.exp((penalised[token]! - maximum) / temperature);
  let kept = sorted.filter((token) => weight(token) > 0);
  if (topK > 0) kept = kept.slice(0, topK);
  const wanted = topP * kept.reduce((sum, token) => sum + weight(token), 0);
  if (topP < 1) {
    let sum = 0;
    const wholePrefix = kept.findIndex((token) => {
      sum += weight(token);
      return sum >= wanted;
    });
    kept = kept.slice(0, wholePrefix < 0 ? kept.length : wholePrefix + 1);
  }
  kept = kept.filter((token) => weight(token) >= minP).sort((a, b) => a - b);
  const total = kept.reduce((before, token) => before + weight(token), 0);
  return new Map(kept.map((token) => [token, weight(token) / total]));
}

export function naiveSample(logits: Float32Array, row: SamplingRow): number {
  const target = naiveUniform(row.seed ?? 0n, row.sequenceIndex ?? 0, row.position ?? 0);
  let sum = 0;
  let last = -1;
  for (const [token, probability] of naiveDistribution(logits, row)) {
    sum += probability;
    last = token;
    if (sum > target) break;
  }
  return last;
}
