import { equalCaches } from '../../network/cache-layers.js';
import { NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { biasTable, distancesOf } from './distances.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm, projection } from './parts.js';

/**
 * The BERT family (BERT, RoBERTa, XLM-RoBERTa, DistilBERT, ELECTRA, MPNet): encoder layers whose tokens attend both ways, learned positions and
 * token types, LayerNorm after each residual sum, biases everywhere. MPNet's scores
 * have a bias by the distance of two tokens. The output is one row for each text: its
 * embedding, or the score of a pair of texts (a cross-encoder).
 *
 *   tokens + types + positions -> norm -> [attention + x -> norm -> feed-forward + x -> norm] ... -> head
 */
export function bert(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation } = config;
  const encoder = config.encoder!;
  const distances = distancesOf(encoder.relative);
  const net = new NetworkBuilder({
    architecture: 'bert',
    vocabSize,
    outputWidth: headWidth(encoder.head, hiddenSize),
    hiddenSize,
    attention: { numLayers: 1, numHeads, rotaryDim: 0, ...(distances && { distances }) },
    caches: equalCaches(1, numHeads, headDim),
  });

  const { embeddingSize = hiddenSize } = encoder;
  const table = (name: string, source: string, rows: number) =>
    net.matrix(name, [{ name: `embeddings.${source}.weight`, rows, columns: embeddingSize }]);
  const epsilon = config.rmsNormEpsilon;
  const norm = (x: ValueRef, name: string, source: string) =>
    layerNorm(net, x, name, source, { epsilon, biased: true });
  const project = (name: string, columns: number, sources: [string, number][]) =>
    projection(net, name, columns, sources, true);

  const relative = distances === undefined ? null : biasTable(net, numHeads, distances.count);
  const sum = net.embedding(table('embedding', 'word_embeddings', vocabSize));
  if (!encoder.withoutTypes)
    net.addEmbedding(sum, table('tokenTypes', 'token_type_embeddings', encoder.tokenTypes), 'tokenTypes');
  net.addEmbedding(sum, table('positions', 'position_embeddings', encoder.positionRows), 'positions');
  let x = norm(sum, 'embeddingNorm', 'embeddings.LayerNorm');
  if (embeddingSize !== hiddenSize)
    x = net.linear(x, project('embeddingProjection', embeddingSize, [['embeddings_project', hiddenSize]]));

  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `encoder.layer.${layer}`;
    const qkv = net.linear(
      x,
      project(`${own}.qkv`, hiddenSize, [
        [`${source}.attention.self.query`, hiddenSize],
        [`${source}.attention.self.key`, hiddenSize],
        [`${source}.attention.self.value`, hiddenSize],
      ]),
    );
    const attended = net.attention(qkv, 0, 1 / Math.sqrt(headDim), { bothWays: true, relative });
    net.addLinear(
      x,
      attended,
      project(`${own}.attentionOutput`, hiddenSize, [[`${source}.attention.output.dense`, hiddenSize]]),
    );
    x = norm(x, `${own}.attentionNorm`, `${source}.attention.output.LayerNorm`);
    const up = project(`${own}.up`, hiddenSize, [[`${source}.intermediate.dense`, intermediateSize]]);
    const h = net.linear(x, { ...up, activation });
    net.addLinear(x, h, project(`${own}.down`, intermediateSize, [[`${source}.output.dense`, hiddenSize]]));
    x = norm(x, `${own}.outputNorm`, `${source}.output.LayerNorm`);
  }
  return net.build(encoderHead(net, x, encoder.head, epsilon));
}
