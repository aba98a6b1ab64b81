import { describe, expect, it } from 'vitest';
import { PacketError } from '../../../cluster/nats/packet.js';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import { QueueSight } from '../../../src/queue/work-sight.js';
import { ModelSight } from '../../../src/serving/pictures/model-sight.js';
import { PictureReader } from '../../../src/serving/pictures/picture-reader.js';

const VOCAB = 1000;
const preprocessor = picturePreprocessor({
  imageProcessor: {
    image_processor_type: 'Qwen2VLImageProcessor',
    size: { shortest_edge: 64, longest_edge: 400 },
    ...{ patch_size: 2, merge_size: 2, temporal_patch_size: 2 },
  },
  ...{ processor: {}, config: {}, tokenizer: {} },
});
const reader = new PictureReader({
  pool: { preprocessor, prepare: async () => [], look: () => preprocessor.plan(1, 1) },
  ...{ towerDigest: 'tower', vocabSize: VOCAB, placeholder: '<image>', tokenId: 9, tokenText: '<image>' },
});
/** Bytes of patches that the tower got, one list for each picture. */
const seen: number[] = [];
const tower = {
  see: async (pictures: readonly { patches: Float32Array; grid: { rows: number; columns: number } }[]) =>
    pictures.map(({ patches, grid }) => {
      seen.push(patches.length);
      return new Float32Array((grid.rows * grid.columns) / 2).fill(patches[0]!);
    }),
};
const model = new ModelSight({ reader, tower: () => tower, rowBytes: 8, maxKeptBytes: 1e6 });
const sight = new QueueSight(model);

const facts = { digest: Uint8Array.from({ length: 32 }, (_, i) => i), width: 16, height: 12 };
const { grids, tileBytes } = reader.planOf(facts);
const ids = reader.idsOf(facts);
const picture = { ...facts, numBytes: tileBytes };
const [grid] = grids;
const request = {
  promptTokens: [1, ...ids, 2],
  maxNewTokens: 1,
  imageGrids: [[1, grid!.rows, grid!.columns]],
};

describe('the sight of a worker', () => {
  it('makes rows of what was read elsewhere once for each salt', async () => {
    sight.check(request, [picture]);
    let brought = 0;
    const bring = async () => {
      brought++;
      return new Uint8Array(tileBytes);
    };
    const rows = await sight.rows(picture, 1n, bring);
    expect(rows).toHaveLength(ids.length);
    expect(await sight.rows(picture, 1n, bring)).toEqual(rows);
    expect([brought, seen.length, model.counts.rows]).toEqual([1, 1, { made: 1, kept: 1 }]);
    await sight.rows(picture, 2n, bring);
    expect([brought, seen.length, model.counts.rows]).toEqual([2, 2, { made: 2, kept: 1 }]);
  });

  it.each([
    ['other ids', { ...request, promptTokens: [1, ...ids.map((id) => id + 1), 2] }, picture],
    ['another place', { ...request, imageGrids: [[0, grid!.rows, grid!.columns]] }, picture],
    ['another grid', { ...request, imageGrids: [[1, 1, ids.length]] }, picture],
    ['no picture', { ...request, imageGrids: [] }, picture],
    ['another picture', request, { ...picture, digest: new Uint8Array(32) }],
    ['other bytes', request, { ...picture, numBytes: 1e9 }],
    ['too many pixels', request, { ...picture, width: 16_000, height: 16_000 }],
    ['no pixels', request, { ...picture, width: 0 }],
    ['a shape that the model cannot have', request, { ...picture, width: 4000, height: 2 }],
  ])('refuses a request with %s', (_, asked, told) => {
    expect(() => sight.check(asked, [told])).toThrow(PacketError);
  });
});
