import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import { patchCount, pictureTokens } from '../../../models/images/preprocess/picture-preprocessor.js';
import { digest, drawnPicture, pictureGoldens } from '../../support/picture-goldens.js';

const cases = pictureGoldens().processors;

describe('preparing pictures', () => {
  it.each(cases)('gives the numbers of transformers: $name', async (golden) => {
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
        const inTurns = new Float32Array(patches.length);
        let end = 0;
        for (const [i, tile] of tiles.entries()) {
          const begin = end;
          end += patchCount(plan.grids[i]!) * plan.rowWidth;
          const rows = inTurns.subarray(begin, end);
          await preprocessor.patchesInTurns(tile, rows, nextTurn);
        }
        expect(digest(inTurns)).toBe(sha256);
      }
    }
  });

  it('gives a picture of any size no more patches than the tower takes, as if the files said so', () => {
    const files = {
      processor: {},
      config: { patch_size: 16, vision_config: { patch_size: 16 } },
      tokenizer: {},
    };
    const made = (imageProcessor: object, maxPatches?: number) =>
      picturePreprocessor({
        ...files,
        imageProcessor: { patch_size: 16, ...imageProcessor },
        ...(maxPatches !== undefined && { maxPatches }),
      });
    const qwen = (longest: number) => ({
      image_processor_type: 'Qwen2VLImageProcessor',
      size: { shortest_edge: 1024, longest_edge: longest },
    });
    const pixtral = (longest: number) => ({
      image_processor_type: 'PixtralImageProcessor',
      size: { longest_edge: longest },
    });
    for (const [large, small] of [
      [qwen(2 ** 24), qwen(1000 * 256)],
      [pixtral(1540), pixtral(31 * 16)],
    ]) {
      const [limited, said, free] = [made(large!, 1000), made(small!), made(large!)];
      expect(limited.settings).toEqual(said.settings);
      expect(limited.plan(4032, 3024)).toEqual(said.plan(4032, 3024));
      const count = (one: typeof free) => patchCount(one.plan(4000, 4000).grids[0]!);
      expect(count(limited)).toBeLessThanOrEqual(1000);
      expect(count(limited)).toBeGreaterThanOrEqual(900);
      expect(count(free)).toBeGreaterThan(9000);
      expect(limited.plan(100, 80)).toEqual(free.plan(100, 80));
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
