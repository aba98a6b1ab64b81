import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import { projection } from '../architectures/parts.js';
import { connected } from './connectors.js';
import { headSources, normSources } from './gemma4-tensors.js';
import { type Clips, clipsOf, type TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/**
 * Gemma 4's tower: layers of its text model that attend both ways, for pictures of any size. A patch has two learned positions, by its column
 * and by its row, and queries and keys turn by both. Small models keep what goes into each linear layer, and what comes out, between two
 * numbers (clips); large ones end with a factor and an addend of each column.
 */
export function gemma4Vision(config: TowerConfig): NetworkPlan {
  const { hiddenSize, positionSide, isStandardized } = config;
  const parts = new TowerParts(config);
  const { net } = parts;
  const x = parts.patches('tower.patch_embedder.input_proj', false);
  const table = { name: 'tower.patch_embedder.position_embedding_table', columns: hiddenSize };
  net.addEmbedding(x, net.matrix('positions', [{ ...table, rows: 2 * positionSide }]), 'places');
  for (let layer = 0; layer < config.numLayers; layer++) addLayer(parts, x, layer, config);
  // As each row is a mean, it may be done before.
  net.scale(x, Math.sqrt(hiddenSize));
  if (isStandardized) {
    const row = (name: string) => ({ name: `tower.${name}`, rows: 1, columns: hiddenSize });
    net.addEmbedding(x, net.matrix('standardBias', [row('std_bias')]), 'tokenIds', -1);
    const scales = net.embedding(net.matrix('standardScale', [row('std_scale')]));
    net.gate(x, scales, hiddenSize, { activation: 'none' });
  }
  return net.build(connected(parts, config, x));
}

function addLayer(parts: TowerParts, x: ValueRef, layer: number, config: TowerConfig): void {
  const { net } = parts;
  const { hiddenSize, numHeads, epsilon } = config;
  const own = `layers.${layer}`;
  const source = `tower.encoder.layers.${layer}`;
  const scales = (name: string, from: string) =>
    net.vector(`${own}.${name}`, [{ name: `${source}.${from}.weight`, columns: hiddenSize }]);
  const norm = (name: string, from: string) => {
    const weight = scales(name, from);
    return () => net.rmsNorm(x, weight, epsilon);
  };
  const addNorm = (value: ValueRef, name: string, from: string) =>
    net.addRmsNorm(x, value, scales(name, from), epsilon);
  const linear = new ClippedLinear(parts, config, layer);

  const input = norm('attentionNorm', 'input_layernorm');
  const qkv = linear.sideBySide(input, 'qkv', ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj']);
  for (const [i, name] of (['query', 'key'] as const).entries()) {
    const weight = net.vector(
      `${own}.${name}Norm`,
      normSources(`${source}.self_attn.${name[0]}_norm`, config),
    );
    net.rmsNormHeads(qkv, i * numHeads, numHeads, weight, epsilon);
  }
  net.rmsNormPlain(qkv, 2 * hiddenSize, numHeads, hiddenSize / numHeads, epsilon);
  const attended = parts.attention(qkv, { scale: 1 });
  const output = linear.of(attended, 'attentionOutput', 'self_attn.o_proj', hiddenSize);
  addNorm(output, 'attentionOutputNorm', 'post_attention_layernorm');

  const mlpInput = norm('mlpNorm', 'pre_feedforward_layernorm');
  const inner = linear.gated(mlpInput, ['mlp.gate_proj', 'mlp.up_proj']);
  const down = linear.of(inner, 'down', 'mlp.down_proj', hiddenSize);
  addNorm(down, 'mlpOutputNorm', 'post_feedforward_layernorm');
}

/** Linear layers of one layer of the tower, with their clips. */
class ClippedLinear {
  readonly #parts: TowerParts;
  readonly #config: TowerConfig;
  readonly #layer: number;

  constructor(parts: TowerParts, config: TowerConfig, layer: number) {
    this.#parts = parts;
    this.#config = config;
    this.#layer = layer;
  }

  /** A linear layer of x, which is changed. */
  of(x: ValueRef, name: string, source: string, rows: number): ValueRef {
    const { net } = this.#parts;
    const clips = this.#clips(source);
    if (clips.input !== null) net.clamp(x, clips.input);
    const output = net.linear(x, this.#weight(name, x.width, [[source, rows]]));
    if (clips.output !== null) net.clamp(output, clips.output);
    return output;
  }

  /** Queries, keys and values of what `input` makes, side by side. */
  sideBySide(input: () => ValueRef, name: string, sources: readonly string[]): ValueRef {
    const { net } = this.#parts;
    const { hiddenSize } = this.#config;
    const clips = sources.map((source) => this.#clips(source));
    const [first] = clips as [Clips];
    if (clips.some(({ input: own }) => String(own) !== String(first.input))) {
      const apart = sources.map((source, i) => this.of(input(), `${name}.${i}`, source, hiddenSize));
      return apart.reduce((before, one) => net.join(before, one));
    }
    const x = input();
    if (first.input !== null) net.clamp(x, first.input);
    const output = net.linear(
      x,
      this.#weight(
        name,
        x.width,
        sources.map((source) => [source, hiddenSize]),
      ),
    );
    for (const [i, { output: own }] of clips.entries())
      if (own !== null) net.clamp(output, own, i * hiddenSize, hiddenSize);
    return output;
  }

  /** activation(gate) * up of what `input` makes. */
  gated(input: () => ValueRef, sources: readonly [gate: string, up: string]): ValueRef {
    const { net } = this.#parts;
    const { intermediateSize: rows, activation } = this.#config;
    if (this.#config.clips === undefined) {
      const x = input();
      const weight = this.#weight(
        'gateUp',
        x.width,
        sources.map((source) => [source, rows]),
      );
      return net.gatedLinear(x, { ...weight, activation });
    }
    const [gate, up] = sources.map((source, i) => this.of(input(), ['gate', 'up'][i]!, source, rows));
    net.gate(up!, gate!, rows, { activation });
    return up!;
  }

  #clips(source: string): Clips {
    return clipsOf(this.#config, this.#layer, source);
  }

  #weight(name: string, columns: number, sources: readonly (readonly [string, number])[]) {
    const from = `tower.encoder.layers.${this.#layer}.`;
    const named = sources.flatMap(([source, rows]): [string, number][] =>
      /[qk]_proj$/.test(source)
        ? headSources(from + source, this.#config)
        : [[`${from}${source}.linear`, rows]],
    );
    return projection(this.#parts.net, `layers.${this.#layer}.${name}`, columns, named, false);
  }
}
