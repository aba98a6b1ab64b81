import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';

const made = madeEmbedder('bge-m3');
const folder = temporaryFolder('skein-token-layers');
let count = 0;

function open(tensors: MadeEmbedder['tensors'], files: MadeEmbedder['files'] = made.files) {
  const changed = { ...made, files, tensors: { ...made.tensors, ...tensors } };
  return openCheckpoint(writeMadeEmbedder(join(folder, `model-${count++}`), changed));
}

const tokensOf = ({ config }: ReturnType<typeof openCheckpoint>) =>
  config.encoder!.head.kind === 'embedding' ? config.encoder!.head.tokens : null;

type List = MadeEmbedder['tensors'][string];
const list = (...shapes: [string, number[]][]): List => shapes.map(([name, shape]) => [name, shape, 0, 1]);

describe('layers over tokens', () => {
  it('are read from files beside the weights, and are part of what a model is', () => {
    const checkpoint = open({});
    expect(tokensOf(checkpoint)).toEqual({ vectors: 24, weights: true });
    expect([...checkpoint.tensors.keys()]).toEqual(
      expect.arrayContaining(['colbert_linear.weight', 'sparse_linear.bias']),
    );
    const shards = { 'one.safetensors': made.tensors['model.safetensors']! };
    const { 'model.safetensors': _, ...layers } = made.tensors;
    const sharded = { ...made, tensors: { ...layers, ...shards } };
    expect(tokensOf(openCheckpoint(writeMadeEmbedder(join(folder, 'shards'), sharded)))).toEqual({
      vectors: 24,
      weights: true,
    });
  });

  it.each([
    [
      { 'sparse_linear.safetensors': list(['weight', [2, 32]], ['bias', [1]]) },
      /weight should have the shape \[1, 32\], found \[2, 32\]/,
    ],
    [
      { 'sparse_linear.safetensors': list(['weight', [1, 32]], ['bias', [2]]) },
      /bias should have the shape \[1\], found \[2\]/,
    ],
    [
      { 'colbert_linear.safetensors': list(['weight', [24, 31]], ['bias', [24]]) },
      /weight should have the shape \[24, 32\], found \[24, 31\]/,
    ],
    [
      { 'colbert_linear.safetensors': list(['weight', [24, 32]]) },
      /should have the tensors weight and bias, found weight\./,
    ],
    [
      { 'colbert_linear.safetensors': list(['weight', [0, 32]], ['bias', [0]]) },
      /should have 1 to \d+ values, found 0/,
    ],
  ])('are refused where they are others: %#', (tensors, message) => {
    expect(() => open(tensors)).toThrow(message);
  });

  it('are refused beside another pooling than that of the first token', () => {
    const files = { ...made.files, '1_Pooling/config.json': { pooling_mode_mean_tokens: true } };
    expect(() => open({}, files)).toThrow(/supported with the pooling cls; this model has mean/);
  });
});
