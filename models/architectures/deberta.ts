import { equalCaches } from '../../network/cache-layers.js';
import { type LinearOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { DisentangledPositions } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { distancesOf, productTables } from './distances.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm, projection } from './parts.js';

/**
 * DeBERTa from version 2 on: BERT's layers, whose scores add products of queries and keys with the distance
 * of two tokens to those of the tokens themselves. Positions and token types are rarely added.
 *
 *   tokens (+ types + positions) (-> hidden size) -> norm -> [attention + x -> norm -> feed-forward + x -> norm] ... -> head
 */
export function deberta(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation } = config;
  const encoder = config.encoder!;
  const relative = encoder.relative as DisentangledPositions;
  const distances = distancesOf(relative)!;
  const net = new NetworkBuilder({
    architecture: 'deberta',
    vocabSize,
    outputWidth: headWidth(encoder.head, hiddenSize),
    hiddenSize,
    attention: { numLayers: 1, numHeads, rotaryDim: 0, distances },
    caches: equalCaches(1, numHeads, headDim),
  });

  const epsilon = config.rmsNormEpsilon;
  const norm = (x: ValueRef, name: string, source: string) =>
    layerNorm(net, x, name, source, { epsilon, biased: true });
  const project = (name: string, columns: number, sources: [string, number][]) =>
    projection(net, name, columns, sources, true);
  const source = (layer: number) => `encoder.layer.${layer}`;
  const stacked = Array.from({ length: numLayers }, (_, layer): LinearOptions => {
    const heads = ['query', 'key', 'value'].map((one): [string, number] => [
      `${source(layer)}.attention.self.${one}_proj`,
      hiddenSize,
    ]);
    return project(`layers.${layer}.qkv`, hiddenSize, heads);
  });
  const shape = { count: distances.count, epsilon, hiddenSize };
  const tables = productTables(net, numLayers, shape, relative, (layer) => stacked[layer]!);
  const products = 1 + Number(relative.withKeys) + Number(relative.withQueries);
  const scale = 1 / Math.sqrt(headDim * products);

  let x = norm(embedded(net, config), 'embeddingNorm', 'embeddings.LayerNorm');
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const output = `${source(layer)}.attention.output`;
    const qkv = net.linear(x, stacked[layer]!);
    const attended = net.attention(qkv, 0, scale, { bothWays: true, relative: tables[layer]! });
    net.addLinear(
      x,
      attended,
      project(`${own}.attentionOutput`, hiddenSize, [[`${output}.dense`, hiddenSize]]),
    );
    x = norm(x, `${own}.attentionNorm`, `${output}.LayerNorm`);
    const up = project(`${own}.up`, hiddenSize, [[`${source(layer)}.intermediate.dense`, intermediateSize]]);
    const h = net.linear(x, { ...up, activation });
    const down: [string, number] = [`${source(layer)}.output.dense`, hiddenSize];
    net.addLinear(x, h, project(`${own}.down`, intermediateSize, [down]));
    x = norm(x, `${own}.outputNorm`, `${source(layer)}.output.LayerNorm`);
  }
  return net.build(encoderHead(net, x, encoder.head, epsilon));
}

/** The sum of the tables' rows, brought to the hidden size where they have another width. */
function embedded(net: NetworkBuilder, { vocabSize, hiddenSize, encoder }: ModelConfig): ValueRef {
  const { embeddingSize = hiddenSize, withoutTypes, tokenTypes, positionRows } = encoder!;
  const table = (name: string, source: string, rows: number) =>
    net.matrix(name, [{ name: `embeddings.${source}.weight`, rows, columns: embeddingSize }]);
  const sum = net.embedding(table('embedding', 'word_embeddings', vocabSize));
  if (!withoutTypes)
    net.addEmbedding(sum, table('tokenTypes', 'token_type_embeddings', tokenTypes), 'tokenTypes');
  if (positionRows > 0)
    net.addEmbedding(sum, table('positions', 'position_embeddings', positionRows), 'positions');
  if (embeddingSize === hiddenSize) return sum;
  const source: [string, number] = ['embeddings.embed_proj', hiddenSize];
  return net.linear(sum, projection(net, 'embeddingProjection', embeddingSize, [source], false));
}
