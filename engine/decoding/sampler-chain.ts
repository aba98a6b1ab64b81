import type { SamplingParams } from '../../callbacks/sampling-params.js';

/**
 * Places of a chain's values. A chain draws the token of a row by more filters than temperature, top-k, top-p and min-p, which
 * stay in the row's own columns:
 *
 *   top-n-sigma -> top-k -> typical-p -> top-p -> min-p -> XTC -> temperature -> draw
 *
 * - top-n-sigma keeps the logits of at least maximum - n * (their standard deviation).
 * - typical-p keeps the tokens whose surprise is nearest to the entropy, until their probability exceeds typicalP.
 * - XTC: with xtcProbability, leaves out all tokens of at least xtcThreshold but the least probable of them.
 * - A dynamic temperature is temperature - range + 2 * range * (entropy / greatest entropy) ** exponent, at least 0 where
 *   temperature - range is below it.
 * - Mirostat takes the place of all of these: version 1 estimates Zipf's exponent from the 100 most probable tokens and keeps
 *   as many as give the wanted surprise; version 2 keeps the tokens of no more surprise than mu. `mu` is its state before
 *   this token, `muAfter` gets the state after it.
 *
 * typical-p, XTC and the entropy see the kept tokens at the temperature 1. top-p and min-p see the request's temperature, or 1
 * with temperatureLast or a dynamic temperature.
 */
export const CHAIN = {
  typicalP: 0,
  topNSigma: 1,
  xtcProbability: 2,
  xtcThreshold: 3,
  dynamicRange: 4,
  dynamicExponent: 5,
  temperatureLast: 6,
  mirostat: 7,
  mirostatTau: 8,
  mirostatEta: 9,
  mirostatMu: 10,
  mirostatMuAfter: 11,
} as const;

export const NUM_CHAIN_VALUES = 12;

/** Highest xtc threshold at which two tokens can reach it: above, XTC leaves nothing out. */
const XTC_THRESHOLD_MAX = 0.5;

/** Values of the request's chain; null if it uses none of these samplers. */
export function chainValuesOf(sampling: SamplingParams): Float64Array | null {
  const usesXtc = sampling.xtcProbability > 0 && sampling.xtcThreshold <= XTC_THRESHOLD_MAX;
  const isUsed =
    sampling.typicalP < 1 ||
    sampling.topNSigma > 0 ||
    usesXtc ||
    sampling.dynatempRange > 0 ||
    sampling.mirostat > 0 ||
    sampling.temperatureLast;
  if (!isUsed) return null;
  const values = new Float64Array(NUM_CHAIN_VALUES);
  values[CHAIN.typicalP] = sampling.typicalP;
  values[CHAIN.topNSigma] = sampling.topNSigma;
  values[CHAIN.xtcProbability] = usesXtc ? sampling.xtcProbability : 0;
  values[CHAIN.xtcThreshold] = sampling.xtcThreshold;
  values[CHAIN.dynamicRange] = sampling.dynatempRange;
  values[CHAIN.dynamicExponent] = sampling.dynatempExponent;
  values[CHAIN.temperatureLast] = Number(sampling.temperatureLast);
  values[CHAIN.mirostat] = sampling.mirostat;
  values[CHAIN.mirostatTau] = sampling.mirostatTau;
  values[CHAIN.mirostatEta] = sampling.mirostatEta;
  return values;
}

/**
 * The chain of one sequence. Mirostat's state before each generated token is kept, so that a token that is drawn again after a
 * pause is drawn from the same state.
 */
export class SequenceChain {
  readonly #values: Float64Array;
  readonly #mus: number[];

  constructor(values: Float64Array) {
    this.#values = values.slice();
    this.#mus = [2 * values[CHAIN.mirostatTau]!];
  }

  /** Values for the row that draws generated token `index`, 0 for the first. */
  valuesAt(index: number): Float64Array {
    this.#values[CHAIN.mirostatMu] = this.#mus[index] ?? this.#mus.at(-1)!;
    return this.#values;
  }

  /** Notes that the token of the row made last has been taken as generated token `index`. */
  take(index: number): void {
    if (this.#values[CHAIN.mirostat]! > 0) this.#mus[index + 1] = this.#values[CHAIN.mirostatMuAfter]!;
  }
}
