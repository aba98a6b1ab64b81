import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';

/**
 * LFM2 (https://arxiv.org/abs/2511.23404): most layers have a short convolution of gated inputs in the place of attention; those that
 * attend are Qwen3's. Larger models have experts in most layers. For a layer without attention:
 *
 *   b | c | h = in(x)       y = c * conv(b * h)       x += out(y)
 */
export function lfm2(config: ModelConfig): NetworkPlan {
  const { hiddenSize: width } = config;
  const { taps, biased } = config.shortConv!;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const input = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    if (parts.attends(layer)) {
      const qkv = parts.qkv(input, layer, false);
      parts.normQueriesAndKeys(qkv, layer);
      net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, false));
    } else {
      const both = net.linear(
        input,
        parts.projection(layer, 'convInput', width, biased, [['conv.in_proj', 3 * width]]),
      );
      net.gate(both, both, width, { first: 2 * width });
      const y = parts.shortConv(both, layer, {
        source: 'conv.conv',
        first: 2 * width,
        columns: width,
        taps,
        biased,
      });
      net.gate(y, both, width, { byFirst: width });
      net.addLinear(x, y, parts.projection(layer, 'convOutput', width, biased, [['conv.out_proj', width]]));
    }
    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    parts.addMlp(x, mlpInput, layer);
  });
}
