import type { SamplingRow } from '../../tools/support/sampling-rows.js';

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

export function naiveUniform(seed: bigint, sequenceIndex: number, position: number, draw = 0): number {
  const key = [Number(seed & 0xffffffffn), Number(seed >> 32n)];
  const [high, low] = naivePhilox([sequenceIndex >>> 0, position >>> 0, draw, 0], key);
  return Number(((BigInt(high!) << 32n) | BigInt(low!)) >> 11n) / 2 ** 53;
}

/** Logits after mask, biases, penalties and bans, as Hugging Face and OpenAI define them. */
export function naiveChanges(logits: Float32Array, row: SamplingRow): Float64Array {
  const {
    prompt = [],
    generated = [],
    repetitionPenalty = 1,
    presencePenalty = 0,
    frequencyPenalty = 0,
  } = row;
  const allowed = new Set(row.allowed ?? logits.keys());
  const result = Float64Array.from(logits, (logit, token) => (allowed.has(token) ? logit : -Infinity));
  const { bias } = row;
  for (const [i, value] of bias?.values.entries() ?? []) {
    const token = bias!.tokens?.[i] ?? i;
    result[token] = Math.fround(result[token]! + value);
  }
  for (const token of new Set([...prompt, ...generated])) {
    if (token < 0) continue;
    const logit = result[token]!;
    result[token] = logit < 0 ? logit * repetitionPenalty : logit / repetitionPenalty;
  }
  for (const token of new Set(generated)) {
    const count = generated.filter((other) => other === token).length;
    result[token]! -= frequencyPenalty * count + presencePenalty;
  }
  for (const token of repeatedNgrams([...prompt, ...generated], row.noRepeatNgramSize ?? 0)) {
    result[token] = -Infinity;
  }
  for (const token of row.banned ?? []) result[token] = -Infinity;
  return result;
}

/** Tokens that would make an n-gram of the history come up again. */
function repeatedNgrams(history: readonly number[], size: number): Set<number> {
  const tokens = new Set<number>();
  if (size === 0 || history.length < size) return tokens;
  const last = history.slice(history.length - size + 1);
  for (let i = 0; i + size <= history.length; i++) {
    const gram = history.slice(i, i + size);
    if (!gram.includes(-1) && last.every((token, j) => token === gram[j])) tokens.add(gram.at(-1)!);
  }
  return tokens;
}

/** Tokens by logit, greatest first, equal ones by id. */
export function sortedTokens(logits: Float64Array): number[] {
  return Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
}

interface Filtered {
  weight: (token: number) => number;
  /** Tokens that top-k and min-p keep, the most probable first. */
  candidates: number[];
  /** Candidates that top-p keeps. */
  nucleus: Set<number>;
}

function filter(logits: Float32Array, row: SamplingRow): Filtered {
  const changed = naiveChanges(logits, row);
  const { temperature = 1, topK = 0, topP = 1, minP = 0 } = row;
  const sorted = sortedTokens(changed);
  const maximum = changed[sorted[0]!]!;
  const weight = (token: number) => Math.exp((changed[token]! - maximum) / temperature);
  const greatest = sorted.filter((token) => weight(token) > 0).slice(0, topK > 0 ? topK : undefined);
  const mass = topP * greatest.reduce((sum, token) => sum + weight(token), 0);
  let before = 0;
  const nucleus = greatest.filter((token, rank) => {
    const isKept = topP === 1 || rank === 0 || before < mass;
    before += weight(token);
    return isKept;
  });
  return { weight, candidates: greatest.filter((t) => weight(t) >= minP), nucleus: new Set(nucleus) };
}

/** Probabilities of the tokens that all filters keep, in ascending id, by a full sort. */
export function naiveDistribution(logits: Float32Array, row: SamplingRow): Map<number, number> {
  if ((row.temperature ?? 0) === 0) return new Map([[sortedTokens(naiveChanges(logits, row))[0]!, 1]]);
  const { weight, candidates, nucleus } = filter(logits, row);
  const kept = candidates.filter((token) => nucleus.has(token)).sort((a, b) => a - b);
  const total = kept.reduce((before, token) => before + weight(token), 0);
  return new Map(kept.map((token) => [token, weight(token) / total]));
}

/** The draws of engine/executors/native/executor/sampling.h, over a full sort. */
export function naiveSample(logits: Float32Array, row: SamplingRow): number {
  if ((row.temperature ?? 0) === 0) return sortedTokens(naiveChanges(logits, row))[0]!;
  const { weight, candidates, nucleus } = filter(logits, row);
  let order = candidates;
  for (let draw = 0; ; draw++) {
    const total = order.reduce((sum, token) => sum + weight(token), 0);
    const target = total * naiveUniform(row.seed ?? 0n, row.sequenceIndex ?? 0, row.position ?? 0, draw);
    let sum = 0;
    const token = order
      .toSorted((a, b) => a - b)
      .find((candidate, i) => {
        sum += weight(candidate);
        return sum > target || i === order.length - 1;
      })!;
    if (nucleus.has(token)) return token;
    order = order.slice(0, order.indexOf(token));
  }
}
