/** RoPE settings of the checkpoint; `type` uses Hugging Face's names. `factor` null in longrope means 1. */
export interface RopeConfig {
  theta: number;
  rotaryDim: number;
  /**
   * Dimensions that turn, the first of rotaryDim: the others have the frequency 0. Absent: all. Where pairs of neighbours turn,
   * their rows are put apart over the whole head, those of pairs that stay as they are too.
   */
  turnedDim?: number;
  /** Axis of the position that each frequency turns by [rotaryDim / 2], see AttentionShape.ropeAxes. Absent: all by time. */
  axes?: number[];
  scaling:
    | { type: 'none' }
    | { type: 'linear'; factor: number }
    | { type: 'dynamic'; factor: number; originalMaxPositions: number }
    | {
        type: 'yarn';
        factor: number;
        originalMaxPositions: number;
        betaFast: number;
        betaSlow: number;
        attentionFactor: number | null;
        mscale: number | null;
        mscaleAllDim: number | null;
        truncate: boolean;
      }
    | {
        type: 'llama3';
        factor: number;
        lowFreqFactor: number;
        highFreqFactor: number;
        originalMaxPositions: number;
      }
    | {
        type: 'longrope';
        shortFactor: number[];
        longFactor: number[];
        factor: number | null;
        attentionFactor: number | null;
        originalMaxPositions: number;
      }
    /** Of Gemma 4: the first `turnedDim` dimensions turn, as slowly as those of a whole head; the others have the frequency 0. */
    | { type: 'proportional'; turnedDim: number; factor: number }
    /** Divisors of the inverse frequencies [rotaryDim / 2], as GGUF's rope_freqs tensor gives them for llama3. */
    | { type: 'factors'; factors: number[] };
}

export interface RopeFrequencies {
  /** Inverse frequencies [rotaryDim / 2], computed in float32 as the reference does. */
  inverseFrequencies: Float32Array;
  /** Factor on cos and sin. */
  scale: number;
}

type Scaling<T extends RopeConfig['scaling']['type']> = Extract<RopeConfig['scaling'], { type: T }>;

const f32 = Math.fround;

/**
 * True where the frequencies depend on the sequence's final length (prompt + most new tokens), so that each sequence
 * takes its own row of frequencies, fixed at its admission. False: `ropeFrequencies(rope)` serves every sequence.
 */
export function ropeDependsOnLength(rope: RopeConfig): boolean {
  return rope.scaling.type === 'dynamic' || rope.scaling.type === 'longrope';
}

/**
 * Inverse frequencies and the factor on cos and sin. Every step rounds to float32 where transformers does.
 *
 * @param finalLength prompt and most new tokens together; only read where ropeDependsOnLength. The default is the
 *   model's original length, at which these scalings are still the plain RoPE (dynamic) or the short factors (longrope).
 */
export function ropeFrequencies(rope: RopeConfig, finalLength = 0): RopeFrequencies {
  if (rope.turnedDim === undefined) return frequenciesOf(rope, finalLength);
  const { inverseFrequencies, scale } = frequenciesOf({ ...rope, rotaryDim: rope.turnedDim }, finalLength);
  const all = new Float32Array(rope.rotaryDim / 2);
  all.set(inverseFrequencies);
  return { inverseFrequencies: all, scale };
}

function frequenciesOf(rope: RopeConfig, finalLength: number): RopeFrequencies {
  const { scaling } = rope;
  switch (scaling.type) {
    case 'none':
      return { inverseFrequencies: plain(rope, rope.theta), scale: 1 };
    case 'linear': {
      const inverseFrequencies = plain(rope, rope.theta).map((value) => f32(value / f32(scaling.factor)));
      return { inverseFrequencies, scale: 1 };
    }
    case 'dynamic':
      return { inverseFrequencies: plain(rope, dynamicTheta(rope, scaling, finalLength)), scale: 1 };
    case 'yarn':
      return yarn(rope, scaling);
    case 'llama3':
      return llama3(rope, scaling);
    case 'longrope': {
      const long = finalLength > scaling.originalMaxPositions;
      return {
        inverseFrequencies: divided(rope, long ? scaling.longFactor : scaling.shortFactor),
        scale: f32(longropeScale(scaling)),
      };
    }
    case 'proportional': {
      const { turnedDim, factor } = scaling;
      const all = plain(rope, rope.theta);
      return {
        inverseFrequencies: all.map((value, i) => (2 * i < turnedDim ? f32(value / f32(factor)) : 0)),
        scale: 1,
      };
    }
    case 'factors':
      return { inverseFrequencies: divided(rope, scaling.factors), scale: 1 };
  }
}

/** theta ** (2 i / rotaryDim) for each i: the inverses of the unscaled frequencies. */
function periods(rope: RopeConfig, theta: number): Float32Array {
  const base = f32(theta);
  return Float32Array.from({ length: rope.rotaryDim / 2 }, (_, i) => base ** f32((2 * i) / rope.rotaryDim));
}

function plain(rope: RopeConfig, theta: number): Float32Array {
  return periods(rope, theta).map((period) => f32(1 / period));
}

function divided(rope: RopeConfig, factors: readonly number[]): Float32Array {
  return periods(rope, rope.theta).map((period, i) => f32(1 / f32(f32(factors[i]!) * period)));
}

/** NTK-aware: the base grows with the length, so that the slowest frequency stretches by the length's ratio. */
function dynamicTheta(rope: RopeConfig, scaling: Scaling<'dynamic'>, finalLength: number): number {
  const { factor, originalMaxPositions } = scaling;
  const length = Math.max(finalLength, originalMaxPositions);
  const stretch = (factor * length) / originalMaxPositions - (factor - 1);
  return rope.theta * stretch ** (rope.rotaryDim / (rope.rotaryDim - 2));
}

function longropeScale({ attentionFactor, factor, originalMaxPositions }: Scaling<'longrope'>): number {
  if (attentionFactor !== null) return attentionFactor;
  if (factor === null || factor <= 1) return 1;
  return Math.sqrt(1 + Math.log(factor) / Math.log(originalMaxPositions));
}

/**
 * Fast dimensions keep their frequency, slow ones are divided by the factor, and those in between are interpolated
 * linearly.
 */
function yarn(rope: RopeConfig, scaling: Scaling<'yarn'>): RopeFrequencies {
  const { rotaryDim, theta } = rope;
  const { factor, originalMaxPositions, betaFast, betaSlow, truncate } = scaling;
  /** The dimension that turns `rotations` times over the original length. */
  const dimensionOf = (rotations: number) =>
    (rotaryDim * Math.log(originalMaxPositions / (rotations * 2 * Math.PI))) / (2 * Math.log(theta));
  const round = truncate ? [Math.floor, Math.ceil] : [(x: number) => x, (x: number) => x];
  const low = Math.max(round[0]!(dimensionOf(betaFast)), 0);
  let high = Math.min(round[1]!(dimensionOf(betaSlow)), rotaryDim - 1);
  if (low === high) high += 0.001;

  const inverseFrequencies = periods(rope, theta).map((period, i) => {
    const ramp = f32(f32(i - f32(low)) / f32(high - low));
    const keep = f32(1 - Math.min(Math.max(ramp, 0), 1));
    const interpolated = f32(1 / f32(f32(factor) * period));
    const extrapolated = f32(1 / period);
    return f32(f32(interpolated * f32(1 - keep)) + f32(extrapolated * keep));
  });
  return { inverseFrequencies, scale: f32(yarnScale(scaling)) };
}

function yarnScale({ attentionFactor, factor, mscale, mscaleAllDim }: Scaling<'yarn'>): number {
  if (attentionFactor !== null) return attentionFactor;
  const magnitude = (weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  return mscale && mscaleAllDim ? magnitude(mscale) / magnitude(mscaleAllDim) : magnitude(1);
}

/** Long wavelengths are divided by the factor, short ones kept, and those in between blended. */
function llama3(rope: RopeConfig, scaling: Scaling<'llama3'>): RopeFrequencies {
  const { factor, lowFreqFactor, highFreqFactor, originalMaxPositions } = scaling;
  const longest = originalMaxPositions / lowFreqFactor;
  const shortest = originalMaxPositions / highFreqFactor;
  const inverseFrequencies = plain(rope, rope.theta).map((frequency) => {
    const wavelength = f32(f32(2 * Math.PI) / frequency);
    if (wavelength > longest) return f32(frequency / f32(factor));
    if (wavelength < shortest) return frequency;
    const smooth = f32(
      f32(f32(f32(originalMaxPositions) / wavelength) - f32(lowFreqFactor)) /
        f32(highFreqFactor - lowFreqFactor),
    );
    const slow = f32(f32(f32(1 - smooth) * frequency) / f32(factor));
    return f32(slow + f32(smooth * frequency));
  });
  return { inverseFrequencies, scale: 1 };
}
