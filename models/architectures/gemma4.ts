import type { NetworkBuilder, ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Gemma 4: Gemma 3's layers, where those without a window have wider heads. In small models the last layers attend to what earlier ones
 * keep, and each layer has a further input of each token; in large ones a layer has a mixture of experts next to its MLP.
 *
 *   x -> norm -> q k v -> norms -> attention -> norm -> + x
 *     -> norm -> MLP (and experts of x) -> norm -> + x
 *     -> gate of the layer's input -> norm -> + x -> * the layer's factor -> next layer
 */
export function gemma4(config: ModelConfig): NetworkPlan {
  const { hiddenSize, attentionBias, layerScales } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(Math.sqrt(hiddenSize));
  const inputs = layerInputs(parts, x, config);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const isKept = parts.keeps(layer);
    const qkv = parts[isKept ? 'qkv' : 'queries'](attentionInput, layer, attentionBias);
    parts.normQueriesAndKeys(qkv, layer);
    if (isKept) parts.normValues(qkv, layer);
    const attended = parts.attention(qkv, layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpOutput = mlp(parts, x, layer, config);
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');

    if (inputs !== null) addLayerInput(parts, x, inputs, layer, config);
    net.scale(x, layerScales?.[layer] ?? 1);
  }
  return parts.build(parts.logits(x));
}

/** The MLP of x, and where the model has experts their mixture of x, each with a norm of its own. */
function mlp(
  parts: DecoderParts,
  x: ValueRef,
  layer: number,
  { hiddenSize, experts }: ModelConfig,
): ValueRef {
  const { net } = parts;
  const input = parts.norm(x, layer, 'mlpNorm', 'pre_feedforward_layernorm');
  const output = net.linear(parts.gatedUp(input, layer, false), parts.down(layer, false));
  if (experts === undefined) return output;
  const sum = parts.norm(output, layer, 'denseOutputNorm', 'post_feedforward_layernorm_1');
  // The router scales what a norm without a weight gives, which is a norm by those scales.
  const routed = parts.norm(x, layer, 'routerNorm', 'mixture.router.scale', hiddenSize ** -0.5);
  const scores = parts.expertScores(routed, layer);
  const mixed = parts.norm(x, layer, 'mixtureNorm', 'pre_feedforward_layernorm_2');
  const mixture = net.experts(mixed, scores, parts.expertsOf(layer));
  parts.addNorm(sum, mixture, layer, 'mixtureOutputNorm', 'post_feedforward_layernorm_2');
  return sum;
}

/** Inputs of all layers, side by side [T x layers * width]: of a table by the tokens, and of the embeddings x. Null: there are none. */
function layerInputs(parts: DecoderParts, x: ValueRef, config: ModelConfig): ValueRef | null {
  const { layerInputWidth: width, numLayers, hiddenSize, vocabSize, rmsNormEpsilon } = config;
  if (width === undefined) return null;
  const { net } = parts;
  const all = numLayers * width;
  const projection = matrix(net, 'layerInputProjection', 'per_layer_model_projection', all, hiddenSize);
  const inputs = net.linear(x, { weight: projection });
  net.scale(inputs, hiddenSize ** -0.5);
  const scales = [{ name: 'model.per_layer_projection_norm.weight', columns: width }];
  net.rmsNormColumns(inputs, 0, net.vector('layerInputNorm', scales), rmsNormEpsilon, numLayers);
  const table = matrix(net, 'layerInputEmbedding', 'embed_tokens_per_layer', vocabSize, all);
  net.addEmbedding(inputs, table, 'tokenIds', Math.sqrt(width));
  net.scale(inputs, Math.SQRT1_2);
  return inputs;
}

/** x += norm(down(activation(up(x)) * the layer's input)) */
function addLayerInput(
  parts: DecoderParts,
  x: ValueRef,
  inputs: ValueRef,
  layer: number,
  { layerInputWidth: width = 0, activation, hiddenSize }: ModelConfig,
): void {
  const { net } = parts;
  const up: [string, number][] = [['per_layer_input_gate', width]];
  const gate = net.linear(x, { ...parts.projection(layer, 'inputGate', x.width, false, up), activation });
  net.gate(gate, inputs, width, { byFirst: layer * width });
  const down: [string, number][] = [['per_layer_projection', hiddenSize]];
  const output = net.linear(gate, parts.projection(layer, 'inputDown', width, false, down));
  parts.addNorm(x, output, layer, 'inputOutputNorm', 'post_per_layer_input_norm');
}

function matrix(net: NetworkBuilder, own: string, source: string, rows: number, columns: number): string {
  return net.matrix(own, [{ name: `model.${source}.weight`, rows, columns }]);
}
