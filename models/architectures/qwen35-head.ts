import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { addLayer } from './qwen35.js';

/**
 * The head of Qwen3.5 and Qwen3-Next that guesses tokens ("multi-token prediction"). At a place it gets the row that the model has made of
 * the tokens so far, after the model's last norm, and the token after them, whose place the model has not
 * computed yet:
 *
 *   fc([norm(embedding of t[i+1]), norm(row i)])  ->  one layer that attends  ->  norm  ->  the model's output layer  ->  t[i+2]
 *
 * Its own normed row takes the place of the model's where it guesses on. Its layer is numbered after the
 * model's layers.
 */
export function qwen35Head(config: ModelConfig): NetworkPlan {
  const { numLayers: layer, hiddenSize: columns, rmsNormEpsilon } = config;
  const own = { ...config, numLayers: layer + 1, attendingLayers: attendsLast(layer) };
  const parts = new DecoderParts(own);
  const { net } = parts;
  const norm = (name: string, source: string) =>
    net.vector(`head.${name}`, [{ name: `mtp.${source}.weight`, columns }]);
  const token = net.rmsNorm(parts.embed(), norm('tokenNorm', 'pre_fc_norm_embedding'), rmsNormEpsilon);
  const row = net.rmsNorm(net.rowInput(columns), norm('rowNorm', 'pre_fc_norm_hidden'), rmsNormEpsilon);
  const both = net.matrix('head.join', [{ name: 'mtp.fc.weight', rows: columns, columns: 2 * columns }]);
  const x = net.linear(net.join(token, row), { weight: both });
  addLayer(parts, own, x, layer);
  const normed = net.rmsNorm(x, norm('norm', 'norm'), rmsNormEpsilon);
  return parts.build(net.linear(parts.keptRows(normed), { weight: parts.outputWeight() }));
}

const attendsLast = (layers: number) => Array.from({ length: layers + 1 }, (_, layer) => layer === layers);
