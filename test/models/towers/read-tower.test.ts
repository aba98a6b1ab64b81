import { describe, expect, it } from 'vitest';
import { pictureRows, placesOf, whyUnseen } from '../../../models/towers/picture-places.js';
import { readTower } from '../../../models/towers/read-tower.js';
import { pictureRowWidth } from '../../../models/towers/tower-config.js';

const QWEN = 'Qwen3VLForConditionalGeneration';
const INTERNVL = 'InternVLForConditionalGeneration';
const GEMMA4 = 'Gemma4ForConditionalGeneration';
const QWEN25 = 'Qwen2_5_VLForConditionalGeneration';
const read = (model: string, fields: object, width = 2048) =>
  readTower('config.json', model, fields as Record<string, unknown>, width);

describe("the configuration of a model's tower", () => {
  it('has the values of transformers where the file is silent', () => {
    const tower = read(QWEN, { vision_config: { out_hidden_size: 2048 } });
    expect(tower).toMatchObject({
      hiddenSize: 1152,
      numLayers: 27,
      patchWidth: 1536,
      merge: 2,
      positionSide: 48,
    });
    expect(pictureRowWidth(tower)).toBe(4 * 2048);
    expect(read('LlavaForConditionalGeneration', { vision_config: {} })).toMatchObject({
      numLayers: 23,
      activation: 'quickGelu',
      patchWidth: 588,
      positionSide: 24,
    });
    const mistral3 = { vision_config: { head_dim: 64 }, text_config: { rms_norm_eps: 1e-4 } };
    expect(read('Mistral3ForConditionalGeneration', mistral3)).toMatchObject({
      merge: 2,
      numLayers: 24,
      connector: { epsilon: 1e-4, biased: false },
    });
    const smolVlm = { scale_factor: 4, vision_config: { image_size: 512, patch_size: 16 } };
    expect(read('SmolVLMForConditionalGeneration', smolVlm)).toMatchObject({ merge: 4, positionSide: 32 });
  });

  it.each([
    [
      'Gemma4UnifiedForConditionalGeneration',
      {},
      'pictures of Gemma4UnifiedForConditionalGeneration are not supported; those of SmolVLM',
    ],
    [
      'LlavaForConditionalGeneration',
      { vision_config: { model_type: 'siglip_vision_model' } },
      'a LLaVA with a tower of model_type "siglip_vision_model"',
    ],
    [GEMMA4, { vision_config: { head_dim: 32 } }, 'head_dim should be 64, a share of hidden_size'],
    [
      GEMMA4,
      { vision_config: { num_key_value_heads: 6 } },
      'num_key_value_heads should be the 12 attention heads',
    ],
    [GEMMA4, { vision_config: { attention_bias: true } }, 'attention_bias should be false'],
    [GEMMA4, { vision_config: {}, text_config: { pad_token_id: 3 } }, 'pad_token_id should be 0'],
    [QWEN, {}, 'vision_config should be an object'],
    [QWEN, { vision_config: {} }, 'out_hidden_size should be 2048'],
    [
      QWEN,
      { vision_config: { out_hidden_size: 2048, deepstack_visual_indexes: [3, 2] } },
      'ascending numbers of the 27 layers',
    ],
    [
      'Mistral3ForConditionalGeneration',
      { vision_config: { model_type: 'siglip_vision_model' } },
      'model_type should be "pixtral"',
    ],
    [
      'Mistral3ForConditionalGeneration',
      { vision_config: {}, vision_feature_layer: [-1, -2] },
      'vision_feature_layer should be',
    ],
    [
      'LlavaNextForConditionalGeneration',
      { vision_config: {} },
      'pictures of LlavaNextForConditionalGeneration are not supported, since the rows of its tiles are joined',
    ],
    [INTERNVL, { vision_config: { patch_size: [14, 16] } }, 'patch_size should be a whole number of pixels'],
    [
      INTERNVL,
      { vision_config: { image_size: 70 } },
      'downsample_ratio should be 1 over a whole number that divides the 5 patches of a side',
    ],
    [INTERNVL, { vision_config: {}, downsample_ratio: 0.3 }, 'downsample_ratio should be 1 over a whole'],
    [INTERNVL, { vision_config: { norm_type: 'group_norm' } }, 'norm_type should be "layer_norm" or'],
    [
      INTERNVL,
      { vision_config: { use_absolute_position_embeddings: false } },
      'use_absolute_position_embeddings should be true',
    ],
    [
      INTERNVL,
      { vision_config: {}, vision_feature_select_strategy: 'full' },
      'vision_feature_select_strategy should be "default"',
    ],
    ['Qwen2VLForConditionalGeneration', { vision_config: {} }, 'hidden_size should be 2048'],
    [
      'Qwen2VLForConditionalGeneration',
      { vision_config: { hidden_size: 2048, mlp_ratio: 0.0003 } },
      'mlp_ratio should be a number that gives a whole width',
    ],
    [QWEN25, { vision_config: { out_hidden_size: 2048, window_size: 100 } }, 'a multiple of the 28 pixels'],
    [
      QWEN25,
      { vision_config: { out_hidden_size: 2048, fullatt_block_indexes: [7, 32] } },
      'fullatt_block_indexes should be ascending numbers of the 32 layers',
    ],
    [
      QWEN25,
      { vision_config: { out_hidden_size: 2048, hidden_size: 1288 } },
      'hidden_size should be a multiple of four times the 16 attention heads',
    ],
    [
      'Gemma3ForConditionalGeneration',
      { vision_config: {}, mm_tokens_per_image: 50 },
      'mm_tokens_per_image should be a square',
    ],
    [
      'SmolVLMForConditionalGeneration',
      { vision_config: { hidden_act: 'snake' } },
      'hidden_act should be one of',
    ],
  ])('is refused where %s has %j', (model, fields, message) => {
    expect(() => read(model, fields)).toThrow(message);
  });
});

describe('the places of a picture', () => {
  const qwen = read(QWEN, { vision_config: { out_hidden_size: 2048, num_position_embeddings: 16 } });
  const clip = read('LlavaForConditionalGeneration', { vision_config: { image_size: 28 } });
  const smolVlm = read('SmolVLMForConditionalGeneration', { vision_config: { image_size: 128 } });

  it('are those of squares, with a share of four positions each', () => {
    const { grid, squares, places, shares } = placesOf(qwen, { rows: 2, columns: 4 });
    expect([...grid]).toEqual([0, 0, 0, 1, 1, 0, 1, 1, 0, 2, 0, 3, 1, 2, 1, 3]);
    expect([...squares]).toEqual([0, 4]);
    expect(pictureRows(qwen, { rows: 2, columns: 4 })).toBe(2);
    // The second row of two stands on the last of the four rows of positions.
    expect([...places!.subarray(8, 12)]).toEqual([12, 13, 12, 13]);
    expect([...shares!.subarray(8, 12)]).toEqual([1, 0, 0, 0]);
  });

  it('are those of windows, of which the last ones are smaller', () => {
    const fields = { out_hidden_size: 2048, window_size: 56 };
    const windows = placesOf(read(QWEN25, { vision_config: fields }), { rows: 6, columns: 4 });
    const { patches, grid, squares, segments } = windows;
    // Squares by windows of 2 x 2: 0 1 2 3 | 4 5.
    expect([...squares]).toEqual([0, 4, 8, 12, 16, 20]);
    expect([...patches]).toEqual(Array.from({ length: 24 }, (_, i) => i));
    expect([...grid.subarray(2 * 16)]).toEqual([4, 0, 4, 1, 5, 0, 5, 1, 4, 2, 4, 3, 5, 2, 5, 3]);
    expect([...segments!.subarray(28, 36)]).toEqual([0, 16, 0, 16, 16, 24, 16, 24]);
    const wide = placesOf(read(QWEN25, { vision_config: fields }), { rows: 4, columns: 6 });
    // Of the squares 0 1 2 / 3 4 5 the first window has 0 1 3 4.
    expect([...wide.squares]).toEqual([0, 4, 16, 8, 12, 20]);
    expect([...wide.patches.subarray(8, 12)]).toEqual([12, 13, 14, 15]);
  });

  it('begin with a row of its own where the tower is CLIP', () => {
    const { patches, positions, types, squares } = placesOf(clip, { rows: 2, columns: 2 });
    expect([patches, positions, types, squares].map((one) => [...one])).toEqual([
      [-1, 0, 1, 2, 3],
      [0, 1, 2, 3, 4],
      [1, 0, 0, 0, 0],
      [1, 2, 3, 4],
    ]);
  });

  it('are squares of patches behind a row of its own where the tower is InternViT', () => {
    const internVl = read(INTERNVL, { vision_config: { image_size: [56, 56] } });
    const { patches, positions, squares, types } = placesOf(internVl, { rows: 4, columns: 4 });
    expect([...patches.subarray(0, 6)]).toEqual([-1, 0, 1, 4, 5, 2]);
    expect([...positions.subarray(0, 6)]).toEqual([0, 1, 2, 5, 6, 3]);
    expect([...squares]).toEqual([1, 5, 9, 13]);
    expect(types[0]).toBe(1);
    expect(whyUnseen(internVl, { rows: 4, columns: 8 })).toContain('4 x 4 are taken');
  });

  it('take patches from row by row to squares', () => {
    const { patches, positions } = placesOf(smolVlm, { rows: 4, columns: 4 });
    expect([...patches.subarray(0, 8)]).toEqual([0, 1, 4, 5, 2, 3, 6, 7]);
    expect([...positions]).toEqual([...patches]);
  });

  it('have a column and a row in the table of Gemma 4', () => {
    const gemma4 = read(GEMMA4, { vision_config: { pooling_kernel_size: 2, position_embedding_size: 9 } });
    const { places, shares, squares, grid } = placesOf(gemma4, { rows: 2, columns: 4 });
    expect([...places!.subarray(0, 16)]).toEqual([0, 9, 0, 0, 1, 9, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0]);
    expect([...shares!.subarray(0, 4)]).toEqual([1, 1, 0, 0]);
    expect([...squares]).toEqual([0, 4]);
    expect([...grid.subarray(8, 12)]).toEqual([0, 2, 0, 3]);
    expect(whyUnseen(gemma4, { rows: 10, columns: 2 })).toContain('up to 9 on a side are taken');
  });

  it.each([
    [qwen, 3, 4, 'A picture has 3 x 4 patches; multiples of 2 are taken.'],
    [qwen, 0, 4, 'multiples of 2'],
    [clip, 2, 3, 'A picture has 2 x 3 patches; 2 x 2 are taken.'],
    [smolVlm, 4, 2, 'as many rows as columns are taken, up to 4'],
    [qwen, 60, 4, null],
  ])('are not those of other grids (%#)', (config, rows, columns, message) => {
    const why = whyUnseen(config, { rows, columns });
    if (message === null) expect(why).toBeNull();
    else expect(why).toContain(message);
  });
});
