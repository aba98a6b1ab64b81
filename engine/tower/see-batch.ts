import { performance } from 'node:perf_hooks';
import { messageOf } from '../../base/error-text.js';
import type { TowerAnswer, TowerPicture } from '../../callbacks/tower-messages.js';
import { pictureRows } from '../../models/towers/picture-places.js';
import type { LoadedTower } from './load-tower.js';

type Tower = Pick<LoadedTower, 'see' | 'config' | 'rowWidth'>;

/**
 * Computes the rows of a batch. If the batch fails as a whole, each picture is tried by itself, so that the error goes to the picture that
 * caused it; a row that is not finite is an error of its picture too.
 */
export function seeBatch(tower: Tower, pictures: readonly TowerPicture[]): TowerAnswer {
  const startMs = performance.now();
  const sizes = pictures.map(({ grid }) => pictureRows(tower.config, grid) * tower.rowWidth);
  const rows = new Float32Array(sizes.reduce((sum, size) => sum + size, 0));
  let end = 0;
  const places = sizes.map((size) => {
    end += size;
    return rows.subarray(end - size, end);
  });
  const errors: (string | null)[] = pictures.map(() => null);
  try {
    rows.set(tower.see(pictures).subarray(0, rows.length));
  } catch (error) {
    if (pictures.length === 1) errors[0] = messageOf(error);
    else for (const [i, picture] of pictures.entries()) errors[i] = alone(tower, picture, places[i]!);
  }
  for (const [i, place] of places.entries()) {
    if (errors[i] !== null || place.every(Number.isFinite)) continue;
    errors[i] = 'The network gave values that are not finite for this picture.';
    place.fill(0);
  }
  return { type: 'rows', rows, errors, forwardMs: performance.now() - startMs };
}

/** @returns the error of the picture; null: there is none */
function alone(tower: Tower, picture: TowerPicture, place: Float32Array): string | null {
  try {
    place.set(tower.see([picture]).subarray(0, place.length));
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
