import { equalCaches } from '../../network/cache-layers.js';
import { NetworkBuilder } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addClipLayers } from './clip-layers.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm } from './parts.js';

/**
 * The part of CLIP and SigLIP that reads texts: learned positions, layers that norm what they read, and a last norm over the row of the
 * text's last token, from which a layer leads into the space that pictures share. CLIP's tokens attend to those before them, SigLIP's both ways.
 */
export function clipText(config: ModelConfig): NetworkPlan {
  const { architecture, vocabSize, hiddenSize, numHeads, headDim, rmsNormEpsilon: epsilon } = config;
  const { bothWays, positionRows, head } = config.encoder!;
  const net = new NetworkBuilder({
    architecture,
    vocabSize,
    outputWidth: headWidth(head, hiddenSize),
    hiddenSize,
    attention: { numLayers: 1, numHeads, rotaryDim: 0 },
    caches: equalCaches(1, numHeads, headDim),
  });
  const table = (name: string, source: string, rows: number) =>
    net.matrix(name, [{ name: `embeddings.${source}.weight`, rows, columns: hiddenSize }]);
  const x = net.embedding(table('embedding', 'token_embedding', vocabSize));
  net.addEmbedding(x, table('positions', 'position_embedding', positionRows), 'positions');
  addClipLayers(net, x, { ...config, epsilon, bothWays, source: 'encoder.layers' });
  const norm = (rows: typeof x) =>
    layerNorm(net, rows, 'finalNorm', 'final_layer_norm', { epsilon, biased: true });
  return net.build(encoderHead(net, x, head, epsilon, norm));
}
