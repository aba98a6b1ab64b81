import { equalCaches } from '../../network/cache-layers.js';
import { type LinearOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { Activation } from '../../network/plan.js';
import { layerNorm, projection } from '../architectures/parts.js';
import { pictureRowWidth, type TowerConfig } from './tower-config.js';

/**
 * Parts that towers have in common, with the weights that they read. A picture is one sequence whose patches attend both ways. There is no
 * vocabulary: the batch's rows are patches, and its rows of logits are the first patches of the squares.
 */
export class TowerParts {
  readonly net: NetworkBuilder;
  readonly #config: TowerConfig;

  constructor(config: TowerConfig) {
    const { kind, hiddenSize, numHeads, ropeTheta } = config;
    const headDim = hiddenSize / numHeads;
    this.#config = config;
    this.net = new NetworkBuilder({
      architecture: kind,
      vocabSize: 1,
      outputWidth: pictureRowWidth(config),
      hiddenSize,
      attention: {
        numLayers: 1,
        numHeads,
        rotaryDim: ropeTheta === undefined ? 0 : headDim,
        ...(ropeTheta !== undefined && { ropeAxes: gridAxes(headDim / 2) }),
      },
      caches: equalCaches(1, numHeads, headDim),
    });
  }

  /** Rows of the patches that the batch brings. */
  patches(source: string, biased: boolean): ValueRef {
    const { patchWidth } = this.#config;
    return this.net.linear(
      this.net.rowInput(patchWidth),
      this.project('patches', source, patchWidth, this.#config.hiddenSize, biased),
    );
  }

  /** The weight of a linear layer, called `name` in the network. */
  project(name: string, source: string, columns: number, rows: number, biased = true): LinearOptions {
    return projection(this.net, name, columns, [[source, rows]], biased);
  }

  norm(x: ValueRef, name: string, source: string): ValueRef {
    return layerNorm(this.net, x, name, source, { epsilon: this.#config.epsilon, biased: true });
  }

  rmsNorm(x: ValueRef, name: string, source: string, epsilon = this.#config.epsilon): ValueRef {
    const weight = this.net.vector(name, [{ name: `${source}.weight`, columns: x.width }]);
    return this.net.rmsNorm(x, weight, epsilon);
  }

  /** @param segments true: patches attend within their window; scale: of products of queries and keys, absent: the usual one */
  attention(
    qkv: ValueRef,
    { segments = false, scale }: { segments?: boolean; scale?: number } = {},
  ): ValueRef {
    const { hiddenSize, numHeads } = this.#config;
    const usual = 1 / Math.sqrt(hiddenSize / numHeads);
    return this.net.attention(qkv, 0, scale ?? usual, { bothWays: true, segments });
  }

  /** x += the feed-forward layers of the normed x: the sum is written in place. */
  addMlp(x: ValueRef, normed: ValueRef, own: string, layers: readonly [string, string]): void {
    const [inner, down] = this.#mlp(normed, own, layers);
    this.net.addLinear(x, inner, down);
  }

  /** Returns the feed-forward layers of the normed rows. */
  mlp(normed: ValueRef, own: string, layers: readonly [string, string]): ValueRef {
    const [inner, down] = this.#mlp(normed, own, layers);
    return this.net.linear(inner, down);
  }

  #mlp(
    normed: ValueRef,
    own: string,
    [up, down]: readonly [string, string],
  ): [inner: ValueRef, down: LinearOptions] {
    const { hiddenSize, intermediateSize, activation } = this.#config;
    const inner = this.net.linear(normed, {
      ...this.project(`${own}.up`, up, hiddenSize, intermediateSize),
      activation,
    });
    return [inner, this.project(`${own}.down`, down, intermediateSize, hiddenSize)];
  }

  /** The layers of SigLIP and CLIP: each sum is written into x. */
  addLayers(x: ValueRef): void {
    const { numLayers, hiddenSize } = this.#config;
    for (let layer = 0; layer < numLayers; layer++) {
      const own = `layers.${layer}`;
      const source = `tower.encoder.layers.${layer}`;
      const input = this.norm(x, `${own}.attentionNorm`, `${source}.layer_norm1`);
      const sources = ['q', 'k', 'v'].map(
        (part) => [`${source}.self_attn.${part}_proj`, hiddenSize] as const,
      );
      const qkv = this.net.linear(input, projection(this.net, `${own}.qkv`, hiddenSize, sources, true));
      const output = `${source}.self_attn.out_proj`;
      this.net.addLinear(
        x,
        this.attention(qkv),
        this.project(`${own}.attentionOutput`, output, hiddenSize, hiddenSize),
      );
      const mlpInput = this.norm(x, `${own}.mlpNorm`, `${source}.layer_norm2`);
      this.addMlp(x, mlpInput, own, [`${source}.mlp.fc1`, `${source}.mlp.fc2`]);
    }
  }

  /** Two linear layers with an activation between them. */
  twoLayers(
    x: ValueRef,
    name: string,
    [first, second]: readonly [string, string],
    inner: number,
    activation: Activation,
    biased = true,
  ): ValueRef {
    const up = this.net.linear(x, {
      ...this.project(`${name}.first`, first, x.width, inner, biased),
      activation,
    });
    return this.net.linear(up, this.project(`${name}.second`, second, inner, this.#config.textWidth, biased));
  }
}

/** The first half of the frequencies turns by the row of a patch, the other by its column. */
function gridAxes(count: number): number[] {
  return Array.from({ length: count }, (_, i) => (i < count / 2 ? 1 : 2));
}
