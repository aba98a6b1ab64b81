import type { RopeConfig } from '../../network/rope.js';
import { ConfigFields } from './config-fields.js';
import type { DecoderFamily, KnownDimensions } from './decoder-family.js';
import type { JsonObject } from './file-reading.js';
import { slidingWindow } from './layer-windows.js';
import { givenRope, ropeOfHuggingFace } from './rope-config.js';

/** What a config.json of Phi-3.5-MoE says beside its dimensions and experts. */
export const phiMoe: DecoderFamily['read'] = (config, dimensions) => ({
  slidingWindow: slidingWindow(config, null),
  outputBias: config.boolean('lm_head_bias', false),
  rope: ropeOf(config, dimensions),
});

/**
 * RoPE, or longrope whose factor on cos and sin has fields of its own: short_mscale, and long_mscale beyond the original length. They are
 * the same in published models.
 */
function ropeOf(config: ConfigFields, { headDim, maxPositions }: KnownDimensions): RopeConfig {
  const rope = ropeOfHuggingFace(config, headDim, maxPositions, { theta: 1_000_000 });
  const { scaling } = rope;
  if (scaling.type === 'none') return rope;
  if (scaling.type !== 'longrope') {
    const key = config.raw('rope_parameters') === undefined ? 'rope_scaling' : 'rope_parameters';
    throw config.error(key, 'absent or of the type longrope or su');
  }
  const fields = new ConfigFields(`${config.where}: rope scaling`, givenRope(config) as JsonObject);
  const attentionFactor = fields.positive('short_mscale');
  if (fields.positive('long_mscale') !== attentionFactor)
    throw fields.error('long_mscale', `short_mscale, which is ${attentionFactor}`);
  return { ...rope, scaling: { ...scaling, attentionFactor } };
}
