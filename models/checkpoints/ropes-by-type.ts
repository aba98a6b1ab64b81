import type { ModelConfig } from '../model-config.js';
import type { ConfigFields } from './config-fields.js';
import { isObject, type JsonObject } from './file-reading.js';
import { givenRope, ropeOfHuggingFace } from './rope-config.js';

/**
 * RoPE of layers without a window and of those with one, by rope_theta, rope_scaling and rope_local_base_freq or, since
 * transformers 5, by rope_parameters for each type of layers.
 *
 * @param usual thetas where the config has none
 * @param usualFull rope_parameters of layers without a window, where the config has none at all
 */
export function ropesByType(
  config: ConfigFields,
  headDim: number,
  maxPositions: number,
  usual: { theta: number; localTheta: number },
  usualFull?: JsonObject,
): Pick<ModelConfig, 'rope' | 'localRopeTheta'> {
  const byType = config.raw('rope_parameters') === undefined ? undefined : givenRope(config);
  if (byType !== undefined && !isObject(byType)) throw config.error('rope_parameters', 'an object');
  if (byType === undefined) {
    return {
      rope: ropeOfHuggingFace(config, headDim, maxPositions, {
        theta: usual.theta,
        ...(usualFull && { parameters: usualFull }),
      }),
      localRopeTheta: config.positive('rope_local_base_freq', usual.localTheta),
    };
  }
  const { full_attention: full = {}, sliding_attention: local = {} } = byType;
  const names = Object.keys(byType);
  const isPlain = (rope: unknown) => isObject(rope) && (rope.rope_type ?? 'default') === 'default';
  const theta = isObject(local) ? (local.rope_theta ?? usual.localTheta) : null;
  const known = names.every((name) => name === 'full_attention' || name === 'sliding_attention');
  if (!known || !isObject(full) || !isPlain(local) || typeof theta !== 'number' || !(theta > 1)) {
    throw config.error(
      'rope_parameters',
      'those of full_attention and, without scaling, of sliding_attention',
    );
  }
  return {
    rope: ropeOfHuggingFace(config, headDim, maxPositions, { parameters: full, theta: usual.theta }),
    localRopeTheta: theta,
  };
}
