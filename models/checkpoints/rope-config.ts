import { isDeepStrictEqual } from 'node:util';
import type { RopeConfig } from '../../network/rope.js';
import { CheckpointError } from './checkpoint.js';
import type { ConfigFields } from './config-fields.js';
import { ConfigFields as Fields, LIMITS } from './config-fields.js';
import { isObject, type JsonObject } from './file-reading.js';

const SCALINGS = ['default', 'linear', 'dynamic', 'yarn', 'llama3', 'longrope', 'proportional'];

/**
 * Reads RoPE from a config.json. The scaling is in rope_scaling with "type" (old) or "rope_type", or, since
 * transformers 5, together with theta in rope_parameters.
 *
 * @param usual `parameters`: used instead of the config's; `theta`, `partial`: defaults where the config has none. Families without
 *   `partial` turn whole heads, whatever the config says.
 */
export function ropeOfHuggingFace(
  config: ConfigFields,
  headDim: number,
  maxPositions: number,
  usual: { parameters?: JsonObject; theta?: number; partial?: number } = {},
): RopeConfig {
  const given = usual.parameters ?? givenRope(config) ?? {};
  if (!isObject(given))
    throw config.error(
      config.raw('rope_parameters') === undefined ? 'rope_scaling' : 'rope_parameters',
      'an object',
    );
  if (Object.values(given).some(isObject)) {
    throw config.error('rope_parameters', 'one set of parameters for all layers');
  }
  const rope = new Fields(`${config.where}: rope scaling`, given);
  const theta =
    rope.raw('rope_theta') === undefined
      ? config.positive('rope_theta', usual.theta ?? 10_000)
      : rope.positive('rope_theta');
  const partial =
    usual.partial === undefined
      ? 1
      : (rope.positiveOrNull('partial_rotary_factor') ??
        config.positive('partial_rotary_factor', usual.partial));
  const rotaryDim = Math.trunc(headDim * partial);
  if (partial > 1 || rotaryDim < 2 || rotaryDim % 2 !== 0) {
    throw new CheckpointError(
      `${config.where}: RoPE should rotate an even number of a head's ${headDim} dimensions, found ${rotaryDim}.`,
    );
  }
  const originalMaxPositions =
    config.raw('original_max_position_embeddings') === undefined
      ? rope.integer('original_max_position_embeddings', 1, LIMITS.positions, maxPositions)
      : config.integer('original_max_position_embeddings', 1, LIMITS.positions);
  const scaling = scalingOf(rope, { rotaryDim, maxPositions, originalMaxPositions });
  const readsPartial = scaling.type === 'none' || scaling.type === 'proportional';
  if (usual.partial === undefined && !readsPartial) refusePartial(config, rope);
  checkTheta(config.where, theta, scaling);
  const axes = axesOf(rope, rotaryDim / 2);
  return { theta, rotaryDim, ...(axes === null ? {} : { axes }), scaling };
}

function axesOf(rope: ConfigFields, count: number): number[] | null {
  const sections = rope.raw('mrope_section');
  if (sections == null) return null;
  const axes = Array.isArray(sections)
    ? axesOfSections(sections, count, rope.boolean('mrope_interleaved', false))
    : null;
  if (axes === null) throw rope.error('mrope_section', `three whole numbers that make up ${count}`);
  return axes;
}

/**
 * Axes of RoPE in three sections (mrope): how many of `count` frequencies turn by time, height and width. null: these are no such sections.
 *
 *   [2, 1, 1]                t t h w
 *   interleaved [4, 2, 2]    t h w t h w t t      height and width in turns with time, as far as their sections go
 */
export function axesOfSections(
  sections: readonly unknown[],
  count: number,
  isInterleaved: boolean,
): number[] | null {
  const lengths = sections.filter((one): one is number => Number.isInteger(one) && (one as number) >= 0);
  const isWhole = lengths.length === 3 && sections.length === 3;
  if (!isWhole || lengths.reduce((sum, one) => sum + one, 0) !== count) return null;
  if (isInterleaved)
    return Array.from({ length: count }, (_, i) => (i % 3 > 0 && i < 3 * lengths[i % 3]! ? i % 3 : 0));
  return lengths.flatMap((length, axis) => new Array<number>(length).fill(axis));
}

/**
 * What a config.json says of RoPE: rope_parameters, or rope_scaling. In transformers rope_scaling replaces rope_parameters whole, theta
 * included, which a user who adds a scaling by hand does not want: both are taken only where they agree.
 */
export function givenRope(config: ConfigFields): unknown {
  const [parameters, scaling] = [config.raw('rope_parameters'), config.raw('rope_scaling')];
  if (isObject(parameters) && isObject(scaling)) {
    const { type, ...rest } = scaling;
    const named = { ...rest, rope_type: rest.rope_type ?? type ?? 'default' };
    const agree = Object.entries(named).every(([name, value]) =>
      isDeepStrictEqual(value, parameters[name] ?? (name === 'rope_type' ? 'default' : undefined)),
    );
    if (!agree)
      throw config.error(
        'rope_scaling',
        'absent next to rope_parameters, where the scaling and theta stand together',
      );
  }
  return parameters ?? scaling;
}

/** Where a family turns whole heads transformers ignores the factor, but fails if RoPE is scaled too. */
function refusePartial(config: ConfigFields, rope: ConfigFields): void {
  for (const fields of [rope, config]) {
    if ((fields.raw('partial_rotary_factor') ?? 1) !== 1)
      throw fields.error('partial_rotary_factor', 'absent or 1 where RoPE is scaled');
  }
}

function scalingOf(
  rope: ConfigFields,
  model: { rotaryDim: number; maxPositions: number; originalMaxPositions: number },
): RopeConfig['scaling'] {
  const { rotaryDim, maxPositions, originalMaxPositions } = model;
  const type = rope.string('rope_type') ?? rope.string('type') ?? 'default';
  const stretched = () => rope.positiveOrNull('factor') ?? maxPositions / originalMaxPositions;
  switch (type) {
    case 'default':
      return { type: 'none' };
    case 'linear':
      return { type: 'linear', factor: rope.positive('factor') };
    case 'dynamic':
      return { type: 'dynamic', factor: rope.positive('factor'), originalMaxPositions: maxPositions };
    case 'yarn':
      return {
        type: 'yarn',
        factor: stretched(),
        originalMaxPositions,
        betaFast: rope.positive('beta_fast', 32),
        betaSlow: rope.positive('beta_slow', 1),
        attentionFactor: rope.positiveOrNull('attention_factor'),
        mscale: rope.positiveOrNull('mscale'),
        mscaleAllDim: rope.positiveOrNull('mscale_all_dim'),
        truncate: rope.boolean('truncate', true),
      };
    case 'llama3': {
      const lowFreqFactor = rope.positive('low_freq_factor');
      const highFreqFactor = rope.positive('high_freq_factor');
      if (highFreqFactor <= lowFreqFactor)
        throw rope.error('high_freq_factor', `more than low_freq_factor ${lowFreqFactor}`);
      return {
        type: 'llama3',
        factor: rope.positive('factor'),
        lowFreqFactor,
        highFreqFactor,
        originalMaxPositions,
      };
    }
    case 'proportional': {
      const partial = rope.positiveOrNull('partial_rotary_factor') ?? 1;
      if (partial > 1) throw rope.error('partial_rotary_factor', 'a number up to 1');
      return {
        type: 'proportional',
        turnedDim: 2 * Math.trunc((partial * rotaryDim) / 2),
        factor: rope.positiveOrNull('factor') ?? 1,
      };
    }
    case 'su':
    case 'longrope':
      return {
        type: 'longrope',
        shortFactor: rope.positives('short_factor', rotaryDim / 2),
        longFactor: rope.positives('long_factor', rotaryDim / 2),
        factor: stretched(),
        attentionFactor: rope.positiveOrNull('attention_factor'),
        originalMaxPositions,
      };
    default:
      throw rope.error(
        rope.raw('rope_type') === undefined ? 'type' : 'rope_type',
        `one of ${SCALINGS.join(', ')}`,
      );
  }
}

/** Families whose RoPE turns pairs of neighbours, where the network turns a head's first half with its second. */
const PAIRS: ReadonlySet<string> = new Set(['ernie4_5', 'glm', 'glm4', 'cohere', 'cohere2']);

export const turnsPairs = (architecture: string): boolean => PAIRS.has(architecture);

/** RoPE of such a family over the whole head: the pairs beyond those that turn have the frequency 0. */
export function turnedPairs(architecture: string, headDim: number, rope: RopeConfig): RopeConfig {
  const isWhole = !turnsPairs(architecture) || rope.rotaryDim === headDim;
  return isWhole ? rope : { ...rope, rotaryDim: headDim, turnedDim: rope.rotaryDim };
}

/** Checks theta: scalings divide by log(theta) or by rotaryDim - 2, so values at which that fails are refused. */
export function checkTheta(where: string, theta: number, scaling: RopeConfig['scaling']): void {
  if (theta <= 1) throw new CheckpointError(`${where}: rope theta should be greater than 1, found ${theta}.`);
  if (scaling.type === 'longrope' && scaling.originalMaxPositions < 2) {
    throw new CheckpointError(`${where}: the original maximum of positions should be 2 or more.`);
  }
}
