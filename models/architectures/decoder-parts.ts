import { equalCaches } from '../../network/cache-layers.js';
import {
  type ExpertOptions,
  type LinearOptions,
  NetworkBuilder,
  type ValueRef,
} from '../../network/network-builder.js';
import type { Activation, AttentionShape, NetworkPlan, TurnedNorms } from '../../network/plan.js';
import { ropeFrequencies } from '../../network/rope.js';
import type { ExpertsConfig, LayerShape, ModelConfig } from '../model-config.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { type ExpertNames, expertNames } from './expert-names.js';
import { layerNorm, projection } from './parts.js';

const NORMS: Readonly<Record<string, string>> = { query: 'self_attn.q_norm', key: 'self_attn.k_norm' };

/** A convolution of a layer. */
interface ConvSource {
  /** Name of its tensors in the layer. */
  source: string;
  first: number;
  columns: number;
  taps: number;
  biased: boolean;
  /** Default: none. */
  activation?: Activation;
}

/** Numbers of the layers that keep keys and values. */
function keepingLayers({ numLayers, attendingLayers: attends, cacheLayers }: ModelConfig): number[] {
  const layers = Array.from({ length: numLayers }, (_, layer) => layer);
  return layers.filter((layer) => attends?.[layer] !== false && (cacheLayers?.[layer] ?? layer) === layer);
}

/**
 * Parts common to many decoders, for architecture files to put together: ops with the weights that they read, under the
 * names that most checkpoints on Hugging Face use. `layer` is the number of a layer.
 */
export class DecoderParts {
  readonly net: NetworkBuilder;
  readonly #config: ModelConfig;
  /** Index of the cache of each layer that keeps keys and values. */
  readonly #caches: ReadonlyMap<number, number>;

  constructor(config: ModelConfig) {
    const { architecture, vocabSize, hiddenSize, numHeads, numKvHeads, headDim, rope, encoder } = config;
    const { layerShapes } = config;
    const ropeTables = this.#ropeTables(config);
    // The layers of an encoder share a cache.
    const keeping = encoder === undefined ? keepingLayers(config) : [0];
    const numLayers = keeping.length;
    const shape: AttentionShape = {
      numLayers,
      numHeads,
      ...(layerShapes !== undefined && { layerHeads: keeping.map((layer) => layerShapes[layer]!.numHeads) }),
      rotaryDim: rope.rotaryDim,
      ...(ropeTables.length > 0 && { ropeTables }),
      ...(rope.axes !== undefined && { ropeAxes: rope.axes }),
    };
    const caches = equalCaches(numLayers, numKvHeads, headDim);
    if (layerShapes !== undefined)
      for (const [cache, layer] of keeping.entries()) {
        const { numKvHeads: kvHeads, headDim: width } = layerShapes[layer]!;
        caches[cache] = { kind: 'keysAndValues', kvHeads, keyDim: width, valueDim: width };
      }
    const outputWidth = encoder === undefined ? vocabSize : headWidth(encoder.head, hiddenSize);
    this.net = new NetworkBuilder({
      architecture,
      vocabSize,
      outputWidth,
      hiddenSize,
      attention: shape,
      caches,
    });
    this.#config = config;
    this.#caches = new Map(keepingLayers(config).map((layer, cache) => [layer, cache]));
  }

  /** Whether a layer attends; the others keep a state of the sequence. */
  attends(layer: number): boolean {
    return this.#config.attendingLayers?.[layer] !== false;
  }

  /** Whether a layer keeps keys and values of its own; the others attend to what an earlier one keeps. */
  keeps(layer: number): boolean {
    return this.#caches.has(layer);
  }

  /** Heads and width of a layer. */
  shapeOf(layer: number): LayerShape {
    return this.#config.layerShapes?.[layer] ?? this.#config;
  }

  /** Embedding rows of the tokens, each times `scale`. */
  embed(scale = 1): ValueRef {
    const { vocabSize: rows, hiddenSize: columns } = this.#config;
    return this.net.embedding(
      this.net.matrix('embedding', [{ name: 'model.embed_tokens.weight', rows, columns }]),
      scale,
    );
  }

  /** x += the layer's part of pictures' rows, of a model that adds levels of them. */
  addPromptLevel(x: ValueRef, layer: number): void {
    const { promptLevels = 0, hiddenSize } = this.#config;
    if (layer < promptLevels) this.net.addPromptRows(x, hiddenSize * (layer + 1));
  }

  /** RMSNorm by the layer's weight `source`, called `name` in the network. @param factor on its weight */
  norm(x: ValueRef, layer: number, name: string, source: string, factor = 1): ValueRef {
    const own = { name: `model.layers.${layer}.${source}.weight`, columns: x.width };
    const scales = this.net.vector(`layers.${layer}.${name}`, [{ ...own, ...(factor !== 1 && { factor }) }]);
    return this.net.rmsNorm(x, scales, this.#config.rmsNormEpsilon);
  }

  /** LayerNorm by the checkpoint's tensors `source`, called `own` in the network. @param more factor: on its weight */
  layerNorm(
    x: ValueRef,
    own: string,
    source: string,
    { biased = false, factor = 1 }: { biased?: boolean; factor?: number } = {},
  ): ValueRef {
    const epsilon = this.#config.rmsNormEpsilon;
    return layerNorm(this.net, x, own, source, { epsilon, biased, factor });
  }

  /** sum += norm(x) */
  addNorm(sum: ValueRef, x: ValueRef, layer: number, name: string, source: string): void {
    this.net.addRmsNorm(sum, x, this.#scales(layer, name, source, x.width), this.#config.rmsNormEpsilon);
  }

  /** Queries, keys and values of x by three projections of the layer. */
  qkv(x: ValueRef, layer: number, biased: boolean): ValueRef {
    const { numHeads, numKvHeads, headDim } = this.shapeOf(layer);
    const values = this.#config.keysAsValues?.[layer] ? 'self_attn.k_proj' : 'self_attn.v_proj';
    const sources: [string, number][] = [
      ['self_attn.q_proj', numHeads * headDim],
      ['self_attn.k_proj', numKvHeads * headDim],
      [values, numKvHeads * headDim],
    ];
    return this.net.linear(x, this.projection(layer, 'qkv', x.width, biased, sources));
  }

  /** Queries of x alone, of a layer that attends to what another one keeps. */
  queries(x: ValueRef, layer: number, biased: boolean): ValueRef {
    const { numHeads, headDim } = this.shapeOf(layer);
    const sources: [string, number][] = [['self_attn.q_proj', numHeads * headDim]];
    return this.net.linear(x, this.projection(layer, 'q', x.width, biased, sources));
  }

  /** Norms each head of the queries and of the keys by itself. */
  normQueriesAndKeys(qkv: ValueRef, layer: number): void {
    const { rmsNormEpsilon } = this.#config;
    const { numHeads, numKvHeads, headDim } = this.shapeOf(layer);
    const scales = (name: string) => this.#scales(layer, `${name}Norm`, NORMS[name]!, headDim);
    this.net.rmsNormHeads(qkv, 0, numHeads, scales('query'), rmsNormEpsilon);
    if (this.keeps(layer)) this.net.rmsNormHeads(qkv, numHeads, numKvHeads, scales('key'), rmsNormEpsilon);
  }

  /** Norms each head of the values by itself, without a weight. */
  normValues(qkv: ValueRef, layer: number): void {
    const { numHeads, numKvHeads, headDim } = this.shapeOf(layer);
    const first = (numHeads + numKvHeads) * headDim;
    this.net.rmsNormPlain(qkv, first, numKvHeads, headDim, this.#config.rmsNormEpsilon);
  }

  /** Norms all queries of a token together, and all its keys. */
  normAllQueriesAndKeys(qkv: ValueRef, layer: number): void {
    const { headDim, rmsNormEpsilon } = this.#config;
    const { numHeads, numKvHeads } = this.shapeOf(layer);
    const [queries, keys] = [numHeads * headDim, numKvHeads * headDim];
    const scales = (name: string, width: number) => this.#scales(layer, `${name}Norm`, NORMS[name]!, width);
    this.net.rmsNormColumns(qkv, 0, scales('query', queries), rmsNormEpsilon);
    this.net.rmsNormColumns(qkv, queries, scales('key', keys), rmsNormEpsilon);
  }

  /** LayerNorm of each head of the queries and of the keys by itself, by weights of its own. */
  layerNormQueriesAndKeys(qkv: ValueRef, layer: number): void {
    const { headDim, rmsNormEpsilon } = this.#config;
    const { numHeads, numKvHeads } = this.shapeOf(layer);
    const scales = (name: string, heads: number) =>
      this.#scales(layer, `${name}Norm`, NORMS[name]!, heads * headDim);
    this.net.layerNormHeads(qkv, 0, numHeads, scales('query', numHeads), rmsNormEpsilon);
    const first = numHeads * headDim;
    this.net.layerNormHeads(qkv, first, numKvHeads, scales('key', numKvHeads), rmsNormEpsilon);
  }

  /** Norms by the layer's weights `query` and `key`, of heads that have turned. */
  turnedNorms(layer: number, query: string, key: string): TurnedNorms {
    const { headDim, rmsNormEpsilon: epsilon } = this.#config;
    return {
      query: this.#scales(layer, 'queryNorm', query, headDim),
      key: this.#scales(layer, 'keyNorm', key, headDim),
      epsilon,
    };
  }

  /** Attention of a layer as the config describes it: with its window, RoPE, scale and cap. */
  attention(qkv: ValueRef, layer: number, norms?: TurnedNorms): ValueRef {
    const { attentionScale, attentionSoftCap: softCap, layerWindows, cacheLayers, encoder } = this.#config;
    const { bothWaysInPictures } = this.#config;
    const { numHeads, headDim } = this.shapeOf(layer);
    const cache = encoder === undefined ? this.#caches.get(cacheLayers?.[layer] ?? layer)! : 0;
    const sinks = { name: `model.layers.${layer}.self_attn.sinks`, columns: numHeads };
    // The engine keeps the window of all layers in its cache, but what an encoder attends to is not kept.
    const ofAll = encoder === undefined ? null : this.#config.slidingWindow;
    const window = layerWindows?.[layer] ?? ofAll;
    const ropeTable = this.#ropeTable(layer, window !== null);
    const scale = attentionScale ?? 1 / Math.sqrt(headDim);
    return this.net.attention(qkv, cache, scale, {
      window,
      softCap: softCap ?? null,
      ropeTable,
      bothWays: encoder?.bothWays === true,
      withinPictures:
        encoder === undefined &&
        (bothWaysInPictures === 'all' || (bothWaysInPictures === 'windowed' && window !== null)),
      ...(encoder === undefined && !this.keeps(layer) && { queriesOnly: true }),
      ...(norms !== undefined && { norms }),
      ...(this.#config.sinkLogits && { sinkLogits: this.net.vector(`layers.${layer}.sinkLogits`, [sinks]) }),
    });
  }

  /** A layer's convolution of `columns` columns of x, from `first` on, by the weight `source`. */
  shortConv(
    x: ValueRef,
    layer: number,
    { source, first, columns, taps, biased, activation = 'none' }: ConvSource,
  ): ValueRef {
    const name = `layers.${layer}.conv`;
    const from = `model.layers.${layer}.${source}`;
    const weight = this.net.vector(name, [{ name: `${from}.weight`, columns: columns * taps }]);
    const bias = biased ? this.net.vector(`${name}.bias`, [{ name: `${from}.bias`, columns }]) : null;
    return this.net.shortConv(x, first, { weight, bias, taps, activation });
  }

  attentionOutput(layer: number, biased: boolean): LinearOptions {
    const { hiddenSize } = this.#config;
    const { numHeads, headDim } = this.shapeOf(layer);
    const sources: [string, number][] = [['self_attn.o_proj', hiddenSize]];
    return this.projection(layer, 'attentionOutput', numHeads * headDim, biased, sources);
  }

  /** Computes activation(gate(x)) * up(x). Each source is [name, rows], with gate above up. */
  gatedUp(x: ValueRef, layer: number, biased: boolean, sources?: [string, number][]): ValueRef {
    const { activation } = this.#config;
    const { intermediateSize } = this.shapeOf(layer);
    const both = sources ?? [
      ['mlp.gate_proj', intermediateSize],
      ['mlp.up_proj', intermediateSize],
    ];
    const gateUp = this.projection(layer, 'gateUp', x.width, biased, both);
    return this.net.gatedLinear(x, { ...gateUp, activation });
  }

  /** Computes activation(up(x)), of an MLP without a gate. */
  up(x: ValueRef, layer: number, biased: boolean): ValueRef {
    const { activation } = this.#config;
    const { intermediateSize } = this.shapeOf(layer);
    const up = this.projection(layer, 'up', x.width, biased, [['mlp.up_proj', intermediateSize]]);
    return this.net.linear(x, { ...up, activation });
  }

  down(layer: number, biased: boolean): LinearOptions {
    const { hiddenSize } = this.#config;
    const { intermediateSize } = this.shapeOf(layer);
    return this.projection(layer, 'down', intermediateSize, biased, [['mlp.down_proj', hiddenSize]]);
  }

  /** sum += the gated MLP of x, or in a layer with experts their mixture and the MLP that all tokens go to. */
  addMlp(sum: ValueRef, x: ValueRef, layer: number, biased = false): void {
    const { architecture, experts } = this.#config;
    const hasExperts = expertNames(architecture) !== undefined && experts?.layers?.[layer] !== false;
    if (!hasExperts) {
      this.net.addLinear(sum, this.gatedUp(x, layer, biased), this.down(layer, biased));
      return;
    }
    this.addMixture(sum, x, layer);
    if (experts?.sharedWidth !== undefined) this.#addSharedExpert(sum, x, layer, experts.sharedWidth);
  }

  /** sum += the mixture of the layer's experts of x; a router gives each row of x its scores. */
  addMixture(sum: ValueRef, x: ValueRef, layer: number): void {
    this.net.addExperts(sum, x, this.expertScores(x, layer), this.expertsOf(layer));
  }

  /** Scores of the layer's experts by its router. */
  expertScores(x: ValueRef, layer: number): ValueRef {
    const { count, biased = false } = this.#expertsConfig();
    const { block, router = 'gate' } = this.#expertNames();
    const sources: [string, number][] = [[`${block}.${router}`, count]];
    return this.net.linear(x, this.projection(layer, 'router', x.width, biased, sources));
  }

  /** The experts of a layer, each with its weights. */
  expertsOf(layer: number): ExpertOptions {
    const { hiddenSize, activation } = this.#config;
    const experts = this.#expertsConfig();
    const { count, width, choiceBias, shareScales, biased = false, clamped, ...rule } = experts;
    const { block, gate, down, choiceBias: bias, shareScales: scales } = this.#expertNames();
    const each = Array.from({ length: count }, (_, expert) => {
      const [own, source] = [`experts.${expert}`, `${block}.experts.${expert}`];
      const both = this.#waysUp(experts).map(([way, rows]): [string, number] => [`${source}.${way}`, rows]);
      return {
        gateUp: this.projection(layer, `${own}.gateUp`, hiddenSize, biased, both),
        down: this.projection(layer, `${own}.down`, width, biased, [[`${source}.${down}`, hiddenSize]]),
      };
    });
    const ofAll = (own: string, source: string | undefined) =>
      this.net.vector(`layers.${layer}.${own}`, [
        { name: `model.layers.${layer}.${block}.${source}`, columns: count },
      ]);
    return {
      gateUp: each.map(({ gateUp }) => gateUp.weight),
      down: each.map((expert) => expert.down.weight),
      ...rule,
      ...(biased && {
        biases: {
          gateUp: each.map(({ gateUp }) => gateUp.bias!),
          down: each.map((expert) => expert.down.bias!),
        },
      }),
      ...(gate === undefined && { ungated: true }),
      ...(choiceBias && { choiceBias: ofAll('choiceBias', bias) }),
      ...(shareScales && { shareScales: ofAll('shareScales', scales) }),
      ...(clamped !== undefined && { clamped }),
      activation: clamped === undefined ? activation : 'none',
    };
  }

  #expertsConfig(): ExpertsConfig {
    const { architecture, experts } = this.#config;
    if (experts !== undefined) return experts;
    throw new Error(`A network of ${architecture} has no experts in its configuration.`);
  }

  /** Names and rows of the matrices on an expert's way up. */
  #waysUp({ width, stacked }: ExpertsConfig): [string, number][] {
    const names = this.#expertNames();
    if (stacked && names.stacked !== undefined) return [[names.stacked, 2 * width]];
    const ways = names.gate === undefined ? [names.up] : [names.gate, names.up];
    return ways.map((way) => [way, width]);
  }

  /** sum += the MLP that all tokens go to, of x, times the sigmoid of its gate where it has one. */
  #addSharedExpert(sum: ValueRef, x: ValueRef, layer: number, width: number): void {
    const { activation, hiddenSize } = this.#config;
    const { gate: gateOfEach, shared } = this.#expertNames();
    const { block = '', gate: gateName } = shared ?? {};
    const up: [string, number] = [`${block}.up_proj`, width];
    const both: [string, number][] = [[`${block}.gate_proj`, width], up];
    const inner =
      gateOfEach === undefined
        ? this.net.linear(x, { ...this.projection(layer, 'sharedUp', x.width, false, [up]), activation })
        : this.net.gatedLinear(x, {
            ...this.projection(layer, 'sharedGateUp', x.width, false, both),
            activation,
          });
    if (gateName !== undefined) {
      const gate = this.net.linear(x, this.projection(layer, 'sharedGate', x.width, false, [[gateName, 1]]));
      // The gate stands before the way down, which is linear.
      this.net.gate(inner, gate, width, { per: width, activation: 'sigmoid' });
    }
    const down: [string, number][] = [[`${block}.down_proj`, hiddenSize]];
    this.net.addLinear(sum, inner, this.projection(layer, 'sharedDown', width, false, down));
  }

  #expertNames(): ExpertNames {
    const names = expertNames(this.#config.architecture);
    if (names === undefined) throw new Error(`A network of ${this.#config.architecture} has no experts.`);
    return names;
  }

  /** Projections of one input, stacked into one weight; each source is [name, rows]. */
  projection(
    layer: number,
    name: string,
    columns: number,
    biased: boolean,
    sources: [string, number][],
  ): LinearOptions {
    const from = sources.map(([source, rows]) => [`model.layers.${layer}.${source}`, rows] as const);
    return projection(this.net, `layers.${layer}.${name}`, columns, from, biased);
  }

  /** The last norm and the output layer over the rows whose logits are needed; of an encoder, its head. */
  logits(x: ValueRef): ValueRef {
    const { rmsNormEpsilon, logitScale, outputSoftCap, encoder, draftHead } = this.#config;
    const { net } = this;
    const factor = encoder === undefined ? logitScale : undefined;
    const source = { name: 'model.norm.weight', columns: x.width, ...(factor !== undefined && { factor }) };
    const norm = (rows: ValueRef) => net.rmsNorm(rows, net.vector('finalNorm', [source]), rmsNormEpsilon);
    if (encoder !== undefined) return encoderHead(net, x, encoder.head, rmsNormEpsilon, norm);
    const logits = net.linear(draftHead ? this.keptRows(norm(x)) : norm(net.selectRows(x)), {
      weight: this.outputWeight(),
    });
    if (outputSoftCap !== undefined) net.softCap(logits, outputSoftCap);
    return logits;
  }

  /** Keeps the rows of all tokens for a head that guesses; returns those whose logits are needed. */
  keptRows(normed: ValueRef): ValueRef {
    this.net.keepRows(normed);
    return this.net.selectRows(normed);
  }

  /** The output layer's weight: the embedding where they are tied. */
  outputWeight(): string {
    const { vocabSize: rows, hiddenSize: columns, tieWordEmbeddings } = this.#config;
    if (tieWordEmbeddings) return 'embedding';
    return this.net.matrix('output', [{ name: 'lm_head.weight', rows, columns }]);
  }

  build(logits: ValueRef): NetworkPlan {
    return this.net.build(logits);
  }

  /** RoPE of layers with a window, where it is another one, and frequencies of 0, by which layers without RoPE turn nothing. */
  #ropeTables(config: ModelConfig): number[][] {
    const { localRopeTheta, layersWithoutRope, layerShapes, layerWindows } = config;
    const { rotaryDim } = config.rope;
    const tables: number[][] = [];
    if (localRopeTheta !== undefined) {
      const layer = layerWindows?.findIndex((window) => window !== null) ?? 0;
      const width = layerShapes?.[layer]?.headDim ?? rotaryDim;
      const local = ropeFrequencies({ theta: localRopeTheta, rotaryDim: width, scaling: { type: 'none' } });
      tables.push([...local.inverseFrequencies]);
    }
    if (layersWithoutRope?.includes(true)) tables.push(new Array(rotaryDim / 2).fill(0));
    return tables;
  }

  #ropeTable(layer: number, hasWindow: boolean): number | null {
    const { localRopeTheta, layersWithoutRope } = this.#config;
    if (layersWithoutRope?.[layer]) return localRopeTheta === undefined ? 0 : 1;
    return hasWindow && localRopeTheta !== undefined ? 0 : null;
  }

  #scales(layer: number, name: string, source: string, columns: number): string {
    return this.net.vector(`layers.${layer}.${name}`, [
      { name: `model.layers.${layer}.${source}.weight`, columns },
    ]);
  }
}
