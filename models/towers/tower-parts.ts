import { equalCaches } from '../../network/cache-layers.js';
import { type LinearOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { Activation } from '../../network/plan.js';
import { addClipLayers, mlpParts } from '../architectures/clip-layers.js';
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
  addMlp(x: ValueRef, normed: ValueRef, own: string, names: readonly [string, string]): void {
    this.net.addLinear(x, ...mlpParts(this.net, normed, own, this.#config, names));
  }

  /** Returns the feed-forward layers of the normed rows. */
  mlp(normed: ValueRef, own: string, names: readonly [string, string]): ValueRef {
    return this.net.linear(...mlpParts(this.net, normed, own, this.#config, names));
  }

  /** The layers of SigLIP and CLIP: each sum is written into x. */
  addLayers(x: ValueRef): void {
    addClipLayers(this.net, x, { ...this.#config, bothWays: true, source: 'tower.encoder.layers' });
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
