import type { PicturePool } from '../../models/images/picture-pool.js';
import { drawsFrom, filesOf, mutated } from './mutated-pictures.js';

/** Results of mutated files, by what became of them. */
export interface MutationRun {
  pictures: number;
  refused: number;
  /** Whatever is neither a picture nor one sentence, with the file that led to it. */
  wrong: string[];
}

/** Gives mutated files of a kind to a pool, one after the other. */
export async function runMutations(
  pool: Pick<PicturePool, 'prepare' | 'preprocessor'>,
  kind: string,
  count: number,
): Promise<MutationRun> {
  const draw = drawsFrom(Number(process.env.SKEIN_TEST_SEED ?? 1) + kind.length * 7919 + kind.charCodeAt(0));
  const files = filesOf(kind);
  const run: MutationRun = { pictures: 0, refused: 0, wrong: [] };
  for (let i = 0; i < count; i++) {
    const file = mutated(files, draw);
    try {
      const [picture] = await pool.prepare([file]);
      const { width, height, tiles } = picture!;
      const plan = pool.preprocessor.plan(width, height);
      if (tiles.length === plan.tiles.length) run.pictures++;
      else run.wrong.push(`${tiles.length} tiles: ${file.toString('base64')}`);
    } catch (error) {
      const { name, message } = error as Error;
      if (name === 'PictureError' && /^The [^\n]+\.$/.test(message)) run.refused++;
      else run.wrong.push(`${name}: ${message}: ${file.toString('base64')}`);
    }
  }
  return run;
}
