import { describe, expect, it } from 'vitest';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import { patchCount, pictureTokens } from '../../../models/images/preprocess/picture-preprocessor.js';
import { digest, drawnPicture, pictureGoldens } from '../../support/picture-goldens.js';

const cases = pictureGoldens().processors;

describe('preparing pictures', () => {
  it.each(cases)('gives the numbers of transformers: $name', (golden) => {
    // Both with the fields that differ from the class, as checkpoints have them, and with all of them.
    for (const imageProcessor of [golden.imageProcessor, golden.whole]) {
      const preprocessor = picturePreprocessor({ ...golden, imageProcessor });
      for (const { size, rows, grids, text, first, sha256 } of golden.pictures) {
        const plan = preprocessor.plan(...size);
        expect(plan.grids.map(({ rows, columns }) => [rows, columns])).toEqual(grids);
        const count = plan.grids.reduce((sum, grid) => sum + patchCount(grid), 0);
        expect([count, plan.rowWidth]).toEqual(rows);
        const asked = plan.prompt.map((part) => (typeof part === 'number' ? '*'.repeat(part) : part));
        expect(asked.join('')).toBe(text);
        expect(pictureTokens(plan)).toBe(text.split('*').length - 1);
        const tiles = preprocessor.tiles(drawnPicture(...size));
        expect(tiles.map(({ width, height }) => ({ width, height }))).toEqual(plan.tiles);
        const patches = preprocessor.patches(tiles);
        expect([...patches.subarray(0, first.length)]).toEqual(first.map(Math.fround));
        expect(digest(patches)).toBe(sha256);
      }
    }
  });

  it('refuses what it does not know, naming the field, and pictures that a model cannot have', () => {
    const files = { imageProcessor: {}, processor: {}, config: {}, tokenizer: {} };
    const qwen = { image_processor_type: 'Qwen2VLImageProcessorFast' };
    expect(() => picturePreprocessor(files)).toThrow(/image_processor_type should be one of CLIPFeature/);
    for (const [field, value] of [
      ['patch_size', 0],
      ['patch_size', 1e9],
      ['merge_size', 'two'],
      ['resample', 0],
      ['do_resize', false],
      ['image_mean', [0.5]],
      ['rescale_factor', 0],
      ['size', { longest_edge: 1e12 }],
    ]) {
      const made = () =>
        picturePreprocessor({ ...files, imageProcessor: { ...qwen, [field as string]: value } });
      expect(made, String(field)).toThrow(/preprocessor_config\.json.* should be .*, found /);
    }
    expect(() => picturePreprocessor({ ...files, imageProcessor: qwen }).plan(1000, 4)).toThrow(
      'The picture has 1000 x 4 pixels: one side may be 200 times as long as the other.',
    );
    const gemma = { image_processor_type: 'Gemma4ImageProcessor' };
    expect(() => picturePreprocessor({ ...files, imageProcessor: gemma })).toThrow(
      'tokenizer_config.json: boi_token should be the text of a token, found nothing.',
    );
  });
});
