import type { SamplingParams } from '../../callbacks/sampling-params.js';

/** Parameters of the chain, with those of the row's own columns; those not given are off. */
export type NaiveChain = Partial<Omit<SamplingParams, 'seed'>>;

interface Candidate {
  token: number;
  logit: number;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Probabilities of candidates at a temperature. */
function softmax(candidates: readonly Candidate[], temperature = 1): number[] {
  const greatest = Math.max(...candidates.map(({ logit }) => logit));
  const weights = candidates.map(({ logit }) => Math.exp((logit - greatest) / temperature));
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

const entropyOf = (probabilities: readonly number[]) =>
  -sum(probabilities.map((p) => (p > 0 ? p * Math.log(p) : 0)));

/** Filters as their papers, and llama.cpp where there is no paper, define them: each a function of the sorted candidates. */
const FILTERS = {
  /** Tang et al., "Top-n-sigma: not all logits are you need", 2024. */
  topNSigma(candidates: Candidate[], n: number): Candidate[] {
    const logits = candidates.map(({ logit }) => logit);
    const mean = sum(logits) / logits.length;
    const sigma = Math.sqrt(sum(logits.map((logit) => (logit - mean) ** 2)) / logits.length);
    return candidates.filter(({ logit }) => logit >= logits[0]! - n * sigma);
  },
  /** Meister et al., "Locally typical sampling", 2022. */
  typical(candidates: Candidate[], mass: number): Candidate[] {
    const probabilities = softmax(candidates);
    const entropy = entropyOf(probabilities);
    const ranked = candidates
      .map((candidate, i) => ({
        candidate,
        p: probabilities[i]!,
        distance: Math.abs(-Math.log(probabilities[i]!) - entropy),
      }))
      .sort((a, b) => a.distance - b.distance);
    let before = 0;
    const kept = new Set(
      ranked
        .filter(({ p }) => {
          const isKept = before <= mass;
          before += p;
          return isKept;
        })
        .map(({ candidate }) => candidate),
    );
    return candidates.filter((candidate) => kept.has(candidate));
  },
  topP(candidates: Candidate[], mass: number, temperature: number): Candidate[] {
    const probabilities = softmax(candidates, temperature);
    let before = 0;
    return candidates.filter((_, i) => {
      const isKept = i === 0 || before < mass;
      before += probabilities[i]!;
      return isKept;
    });
  },
  minP(candidates: Candidate[], share: number, temperature: number): Candidate[] {
    const probabilities = softmax(candidates, temperature);
    return candidates.filter((_, i) => probabilities[i]! >= share * probabilities[0]!);
  },
  /** "Exclude top choices", as llama.cpp has it. */
  xtc(candidates: Candidate[], threshold: number): Candidate[] {
    const above = softmax(candidates).filter((p) => p >= threshold).length;
    return above >= 2 ? candidates.slice(above - 1) : candidates;
  },
};

/**
 * Probabilities of the tokens that a chain keeps, by full sorts, and the temperature that they are drawn at. `excludes`: XTC
 * applies to this token.
 */
export function naiveChain(
  logits: ArrayLike<number>,
  chain: NaiveChain,
  excludes: boolean,
): Map<number, number> {
  const { temperature = 1, dynatempRange = 0, dynatempExponent = 1 } = chain;
  let candidates = Array.from(logits, (logit, token) => ({ token, logit }))
    .filter(({ logit }) => logit > -Infinity)
    .sort((a, b) => b.logit - a.logit || a.token - b.token);
  const seen = chain.temperatureLast || dynatempRange > 0 ? 1 : temperature;
  if (chain.topNSigma) candidates = FILTERS.topNSigma(candidates, chain.topNSigma);
  if (chain.topK) candidates = candidates.slice(0, chain.topK);
  if ((chain.typicalP ?? 1) < 1) candidates = FILTERS.typical(candidates, chain.typicalP!);
  if ((chain.topP ?? 1) < 1) candidates = FILTERS.topP(candidates, chain.topP!, seen);
  if (chain.minP) candidates = FILTERS.minP(candidates, chain.minP, seen);
  if (chain.xtcProbability && excludes) candidates = FILTERS.xtc(candidates, chain.xtcThreshold ?? 0.1);
  let drawnAt = temperature;
  if (dynatempRange > 0 && candidates.length > 1) {
    const [least, most] = [Math.max(0, temperature - dynatempRange), temperature + dynatempRange];
    const share = entropyOf(softmax(candidates)) / Math.log(candidates.length);
    drawnAt = least + (most - least) * share ** dynatempExponent;
  }
  const probabilities = softmax(candidates, drawnAt);
  return new Map(candidates.map(({ token }, i) => [token, probabilities[i]!]));
}

/** Probabilities of the tokens that mirostat keeps at this mu (Basu et al., "Mirostat", 2021). */
export function naiveMirostat(
  logits: ArrayLike<number>,
  { version, mu, temperature = 1 }: { version: number; mu: number; temperature?: number },
): Map<number, number> {
  const candidates = Array.from(logits, (logit, token) => ({ token, logit }))
    .filter(({ logit }) => logit > -Infinity)
    .sort((a, b) => b.logit - a.logit || a.token - b.token);
  const probabilities = softmax(candidates, temperature);
  let count: number;
  if (version === 2) {
    count = Math.max(1, probabilities.filter((p) => -Math.log2(p) <= mu).length);
  } else {
    let [products, squares] = [0, 0];
    for (let i = 0; i < Math.min(100, probabilities.length) - 1; i++) {
      const t = Math.log((i + 2) / (i + 1));
      products += t * Math.log(probabilities[i]! / probabilities[i + 1]!);
      squares += t * t;
    }
    const s = products / squares;
    const epsilon = s - 1;
    const k = ((epsilon * 2 ** mu) / (1 - logits.length ** -epsilon)) ** (1 / s);
    count = Math.max(1, Math.min(candidates.length, Math.trunc(k)));
  }
  const kept = candidates.slice(0, count);
  const shares = softmax(kept, temperature);
  return new Map(kept.map(({ token }, i) => [token, shares[i]!]));
}

/**
 * DRY as llama.cpp defines it: what each token loses, by comparing the end of the history with the part in front of every
 * place.
 */
export function naiveDry(
  history: readonly number[],
  { multiplier, base, allowedLength, lastN = -1 }: Record<string, number>,
  breakers: readonly (readonly number[])[],
): Map<number, number> {
  const tokens = lastN! < 0 ? history : history.slice(Math.max(0, history.length - lastN!));
  const end = tokens.length;
  let most = end;
  for (let i = end - 1; i >= 0 && most === end; i--) {
    const fitting = breakers.filter(
      (b) => i + b.length <= end && b.every((token, j) => token === tokens[i + j]),
    );
    if (fitting.length > 0) most = end - i - Math.max(...fitting.map(({ length }) => length));
  }
  const lost = new Map<number, number>();
  for (let place = 1; place < end; place++) {
    let same = 0;
    while (same < place && tokens[place - 1 - same] === tokens[end - 1 - same]) same++;
    const repeated = Math.min(same, most);
    if (repeated < allowedLength!) continue;
    const penalty = multiplier! * base! ** (repeated - allowedLength!);
    lost.set(tokens[place]!, Math.max(penalty, lost.get(tokens[place]!) ?? 0));
  }
  return lost;
}
