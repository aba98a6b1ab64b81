import { findPackages } from '../../../base/optional-packages.js';
import { decodedPicture } from '../../../models/images/decode-picture.js';
import { pictureDigest } from '../../../models/images/picture-identity.js';
import { PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import type * as PoolModule from '../../../models/images/picture-pool.js';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import { pictureTokens } from '../../../models/images/preprocess/picture-preprocessor.js';
import { loadSharp, SHARP_PACKAGE, type Sharp } from '../../../models/images/sharp-package.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench } from '../bench.js';
import { compiled } from '../compiled.js';
import { roundsFlag } from '../flags.js';
import { FAMILIES } from './families.js';

const FLAGS = {
  width: { argument: 'N', default: '1920', help: 'pixels of a row (default 1920)' },
  height: { argument: 'N', default: '1080', help: 'rows (default 1080)' },
  ...roundsFlag(5),
} as const;

const STEPS = ['decode', 'digest', 'tiles', 'patches', 'all'] as const;
type Times = Record<(typeof STEPS)[number], number[]>;

/**
 * Milliseconds of a JPEG picture on its way to the tower, by step and family of models: processor time of decoding, its digest, its tiles and their
 * patches, each in this process; and the time that all but the patches take through a pool, whose process is warm.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/executors.md',
  sections: ['pictures'],
  async run(flags, { progress, report }) {
    const sharp = loadSharp(findPackages(Object.keys(SHARP_PACKAGE), null));
    const [width, height] = [countOf('width', flags.width), countOf('height', flags.height)];
    const file = await jpeg(sharp, width, height);
    const { PicturePool } = await compiled<typeof PoolModule>('models/images/picture-pool.js');
    const sides = Object.entries(FAMILIES).map(([name, files]) => ({
      name,
      preprocessor: picturePreprocessor(files),
      pool: new PicturePool(files),
      times: Object.fromEntries(STEPS.map((step) => [step, [] as number[]])) as Times,
    }));
    for (const { pool } of sides) await pool.prepare([file]);
    await takeRounds(sides, countOf('rounds', flags.rounds), async ({ name, preprocessor, pool, times }) => {
      progress(name);
      const timed = async <T>(step: keyof Times, work: () => T | Promise<T>): Promise<T> => {
        const [start, before] = [performance.now(), process.cpuUsage()];
        const result = await work();
        const { user, system } = process.cpuUsage(before);
        times[step].push(step === 'all' ? performance.now() - start : (user + system) / 1000);
        return result;
      };
      const pixels = await timed('decode', () => decodedPicture(file, sharp, PICTURE_LIMITS));
      await timed('digest', () => pictureDigest(pixels, preprocessor.settings));
      const tiles = await timed('tiles', () => preprocessor.tiles(pixels));
      await timed('patches', () => preprocessor.patches(tiles));
      await timed('all', () => pool.prepare([file]));
    });
    for (const { pool } of sides) await pool.close();
    const rows = sides.map(({ name, preprocessor, times }) => {
      const plan = preprocessor.plan(width, height);
      const sizes = plan.tiles.length > 1 ? `${plan.tiles.length} of ` : '';
      const tile = plan.tiles[0]!;
      return [
        name,
        `${sizes}${tile.width} x ${tile.height}`,
        String(pictureTokens(plan)),
        ...STEPS.map((step) => median(times[step]).toFixed(0)),
      ];
    });
    report({
      section: 'pictures',
      conditions: `a JPEG of ${width} x ${height} pixels with ${(file.length / 1000).toFixed(0)} kB, ${flags.rounds} rounds in turns, medians in milliseconds`,
      lines: [
        markdownTable(
          [
            '',
            'the tower sees',
            'tokens',
            'decode',
            'digest',
            'tiles',
            'patches',
            'file to tiles, in the process',
          ],
          rows,
          2,
        ),
      ],
    });
  },
});

/** What sharp has beyond what Skein calls of it. */
type Encoder = (
  pixels: Uint8Array,
  options: { raw: { width: number; height: number; channels: 3 } },
) => { jpeg(options: { quality: number }): { toBuffer(): Promise<Buffer> } };

/** A drawn picture with some noise, as a camera's. */
function jpeg(sharp: Sharp, width: number, height: number): Promise<Buffer> {
  const pixels = new Uint8ClampedArray(width * height * 3);
  let noise = 1;
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      for (let c = 0; c < 3; c++) {
        noise = (Math.imul(noise, 1_103_515_245) + 12_345) | 0;
        pixels[at++] = 128 + 90 * Math.sin(x / 37 + c) * Math.cos(y / (29 + c)) + ((noise >>> 16) & 15);
      }
  const encoder = sharp as unknown as Encoder;
  return encoder(new Uint8Array(pixels.buffer), { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 85 })
    .toBuffer();
}
