import type { ItemsAnswer } from '../../callbacks/items-messages.js';
import type { TowerPicture } from '../../callbacks/tower-messages.js';
import { pictureRows } from '../../models/towers/picture-places.js';
import { answerItems } from '../worker/answer-items.js';
import type { LoadedTower } from './load-tower.js';

type Tower = Pick<LoadedTower, 'see' | 'config' | 'rowWidth'>;

/** Computes the rows of a batch; see answerItems. */
export function seeBatch(tower: Tower, pictures: readonly TowerPicture[]): ItemsAnswer {
  const sizes = pictures.map(({ grid }) => pictureRows(tower.config, grid) * tower.rowWidth);
  const compute = (some: readonly TowerPicture[], places: readonly Float32Array[]) => {
    const rows = tower.see(some);
    let end = 0;
    for (const place of places) {
      place.set(rows.subarray(end, end + place.length));
      end += place.length;
    }
  };
  return answerItems(pictures, sizes, compute, 'picture');
}
