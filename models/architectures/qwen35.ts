import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';
import type { DecoderParts } from './decoder-parts.js';

/**
 * Qwen3.5: three of four layers have a gated delta rule in the place of attention, and heads that attend have a gate each: their
 * output times the sigmoid of it. The rule's queries, keys and values pass a short convolution first; what it gives is normed head by
 * head and gated too. Larger models have a mixture of experts in place of an MLP, together with one expert
 * that all tokens go to. Qwen3-Next is the same network; its files have the projections of the rule by heads
 * of keys.
 */
export function qwen35(config: ModelConfig): NetworkPlan {
  return decoder(config, (parts, x, layer) => addLayer(parts, config, x, layer));
}

/** x += what the layer makes of it: the sum is written in place. */
export function addLayer(parts: DecoderParts, config: ModelConfig, x: ValueRef, layer: number): void {
  const input = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
  if (parts.attends(layer)) addAttention(parts, config, x, input, layer);
  else addDelta(parts, config, x, input, layer);
  parts.addMlp(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
}

/** Names of a layer's projections of queries, and of the gates of heads, which alternate in the checkpoint. */
export function queryNames(layer: number | string, head: number): { query: string; gate: string } {
  const prefix = `model.layers.${layer}.self_attn.q_proj.${head}`;
  return { query: `${prefix}.query.weight`, gate: `${prefix}.gate.weight` };
}

function addAttention(
  parts: DecoderParts,
  config: ModelConfig,
  x: ValueRef,
  input: ValueRef,
  layer: number,
): void {
  const { net } = parts;
  const { numHeads, numKvHeads, headDim, hiddenSize: columns } = config;
  const heads = Array.from({ length: numHeads }, (_, head) => queryNames(layer, head));
  const keys = ['k', 'v'].map((name) => ({
    name: `model.layers.${layer}.self_attn.${name}_proj.weight`,
    rows: numKvHeads * headDim,
    columns,
  }));
  const ofHead = (name: string) => ({ name, rows: headDim, columns });
  const qkvWeight = net.matrix(`layers.${layer}.qkv`, [...heads.map(({ query }) => ofHead(query)), ...keys]);
  const gateWeight = net.matrix(
    `layers.${layer}.attentionGate`,
    heads.map(({ gate }) => ofHead(gate)),
  );
  const qkv = net.linear(input, { weight: qkvWeight });
  const gate = net.linear(input, { weight: gateWeight });
  parts.normQueriesAndKeys(qkv, layer);
  const attended = parts.attention(qkv, layer);
  net.gate(attended, gate, numHeads * headDim, { activation: 'sigmoid' });
  net.addLinear(x, attended, parts.attentionOutput(layer, false));
}

function addDelta(
  parts: DecoderParts,
  config: ModelConfig,
  x: ValueRef,
  input: ValueRef,
  layer: number,
): void {
  const { net } = parts;
  const { hiddenSize, rmsNormEpsilon } = config;
  const { taps } = config.shortConv!;
  const { keyHeads, valueHeads, keyDim, valueDim } = config.delta!;
  const values = valueHeads * valueDim;
  const columns = 2 * keyHeads * keyDim + values;
  const projected = (name: string, sources: [string, number][]) =>
    net.linear(input, parts.projection(layer, name, hiddenSize, false, sources));
  const sources = deltaSources(config);
  const mixed = projected('deltaInput', sources.mixed);
  const z = projected('deltaGate', sources.z);
  const gates = projected('deltaRates', sources.rates);
  const conv = {
    source: 'linear_attn.conv1d',
    first: 0,
    columns,
    taps,
    biased: false,
    activation: 'silu' as const,
  };
  const qkv = parts.shortConv(mixed, layer, conv);
  const vector = (name: string, source: string, entries: number) =>
    net.vector(`layers.${layer}.${name}`, [
      { name: `model.layers.${layer}.linear_attn.${source}`, columns: entries },
    ]);
  const y = net.gatedDelta(qkv, gates, {
    decay: vector('deltaDecay', 'A_log', valueHeads),
    decayBias: vector('deltaDecayBias', 'dt_bias', valueHeads),
    ...config.delta!,
    epsilon: LENGTH_EPSILON,
  });
  net.rmsNormColumns(y, 0, vector('deltaNorm', 'norm.weight', valueDim), rmsNormEpsilon, valueHeads);
  net.gate(y, z, values, { activation: 'silu' });
  net.addLinear(
    x,
    y,
    parts.projection(layer, 'deltaOutput', values, false, [['linear_attn.out_proj', hiddenSize]]),
  );
}

/** Parts of the projections of Qwen3-Next, in their order for each head of keys. */
export const NEXT_PARTS = {
  in_proj_qkvz: ['query', 'key', 'value', 'z'],
  in_proj_ba: ['b', 'a'],
} as const;

/** Projections of the delta rule: [name, rows] of what passes the convolution, of the gate of the output, and of b and a. */
function deltaSources({
  architecture,
  delta,
}: ModelConfig): Record<'mixed' | 'z' | 'rates', [string, number][]> {
  const { keyHeads, valueHeads, keyDim, valueDim } = delta!;
  const values = valueHeads * valueDim;
  if (architecture !== 'qwen3next')
    return {
      mixed: [['linear_attn.in_proj_qkv', 2 * keyHeads * keyDim + values]],
      z: [['linear_attn.in_proj_z', values]],
      rates: [
        ['linear_attn.in_proj_b', valueHeads],
        ['linear_attn.in_proj_a', valueHeads],
      ],
    };
  const ofHeads = (projection: keyof typeof NEXT_PARTS, part: string, rows: number): [string, number][] =>
    Array.from({ length: keyHeads }, (_, head) => [`linear_attn.${projection}.${head}.${part}`, rows]);
  const ofKey = valueHeads / keyHeads;
  return {
    mixed: [
      ...ofHeads('in_proj_qkvz', 'query', keyDim),
      ...ofHeads('in_proj_qkvz', 'key', keyDim),
      ...ofHeads('in_proj_qkvz', 'value', ofKey * valueDim),
    ],
    z: ofHeads('in_proj_qkvz', 'z', ofKey * valueDim),
    rates: [...ofHeads('in_proj_ba', 'b', ofKey), ...ofHeads('in_proj_ba', 'a', ofKey)],
  };
}

/** Under the root of the length of a head's queries and keys. */
const LENGTH_EPSILON = 1e-6;
