import { afterAll, describe, expect, it } from 'vitest';
import { loadEncoder } from '../../engine/encoder/load-encoder.js';
import { loadTower } from '../../engine/tower/load-tower.js';
import { TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madePictures } from '../support/made-towers.js';
import { MADE_TWO_TOWERS, type MadeTwoTowers, writeTwoTowers } from '../support/made-two-towers.js';
import { instructionSets } from '../support/native-options.js';

/** Of a row of length 1, of which that of transformers' own float32 is up to 1e-7. */
const DIFFERENCE_MAX = 2e-6;
const SIGLIP_LENGTH = 64;

const folder = temporaryFolder('skein-two-towers');
const engines = new TestEngines();
afterAll(() => engines.remove());

const paths = new Map(MADE_TWO_TOWERS.map((made) => [made.name, writeTwoTowers(folder, made)]));

type Settings = { instructionSet?: (typeof instructionSets)[number]; executor?: 'wasm' };

/** Embeddings of all texts and pictures, in one batch or each alone. */
async function rowsOf(made: MadeTwoTowers, settings: Settings = {}, alone = false) {
  const { directory } = await engines.get(paths.get(made.name)!, 'f32');
  const encoder = await loadEncoder(directory, { threads: 1, ...settings });
  const tower = await loadTower(directory, { threads: 1, ...settings });
  const sequences = made.texts.map(({ tokens }) => {
    const filled =
      made.name === 'siglip' ? [...tokens, ...Array(SIGLIP_LENGTH - tokens.length).fill(1)] : tokens;
    return { tokenIds: Int32Array.from(filled), tokenTypes: null };
  });
  const pictures = madePictures(made);
  const width = made.pictureRows[0]!.length;
  const batched = <T>(items: readonly T[], compute: (some: readonly T[]) => Float32Array) =>
    (alone ? items.map((item) => [item]) : [items]).flatMap((some) => {
      const rows = compute(some);
      return some.map((_, i) => Float32Array.from(rows.subarray(i * width, (i + 1) * width)));
    });
  const rows = {
    texts: batched(sequences, (some) => encoder.encode(some)),
    pictures: batched(pictures, (some) => tower.see(some)),
  };
  encoder.close();
  tower.close();
  return rows;
}

const worst = (rows: readonly Float32Array[], expected: readonly number[][]) =>
  Math.max(...rows.flatMap((row, i) => expected[i]!.map((value, j) => Math.abs(value - row[j]!))));

describe.each(MADE_TWO_TOWERS)('a model of two towers: $name', (made) => {
  it('embeds texts and pictures as transformers does, and their cosines are the same', async () => {
    const { texts, pictures } = await rowsOf(made);
    const expected = made.texts.map(({ row }) => row);
    expect(worst(texts, expected)).toBeLessThan(DIFFERENCE_MAX);
    expect(worst(pictures, made.pictureRows)).toBeLessThan(DIFFERENCE_MAX);
    const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
      Array.from(a).reduce((sum, value, i) => sum + value * b[i]!, 0);
    const cosines = texts.flatMap((text) => pictures.map((picture) => dot(text, picture)));
    const ofTransformers = expected.flatMap((text) => made.pictureRows.map((picture) => dot(text, picture)));
    const error = Math.max(...cosines.map((one, i) => Math.abs(one - ofTransformers[i]!)));
    expect(error).toBeLessThan(DIFFERENCE_MAX);
  });

  it('gives each the same bits alone as in a batch', async () => {
    expect(await rowsOf(made, {}, true)).toEqual(await rowsOf(made));
  });

  it.each([...instructionSets.map((instructionSet) => ({ instructionSet })), { executor: 'wasm' as const }])(
    'does so with %j',
    async (settings) => {
      const { texts, pictures } = await rowsOf(made, settings);
      expect(
        worst(
          texts,
          made.texts.map(({ row }) => row),
        ),
      ).toBeLessThan(DIFFERENCE_MAX);
      expect(worst(pictures, made.pictureRows)).toBeLessThan(DIFFERENCE_MAX);
    },
  );
});
