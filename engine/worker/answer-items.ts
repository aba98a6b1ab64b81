import { performance } from 'node:perf_hooks';
import { messageOf } from '../../base/error-text.js';
import { firstNotFinite } from '../../base/finite-floats.js';
import type { ItemsAnswer } from '../../callbacks/items-messages.js';

/**
 * Computes the values of a batch's items. If the batch fails as a whole, each item is tried by itself, so that the error goes to the one
 * that caused it; values that are not finite are an error of their item too.
 *
 * @param sizes numbers of values of each item
 * @param compute writes the values of some items to their places
 * @param noun what an item is, in errors
 */
export function answerItems<Item>(
  items: readonly Item[],
  sizes: readonly number[],
  compute: (some: readonly Item[], places: readonly Float32Array[]) => void,
  noun: string,
): ItemsAnswer {
  const startMs = performance.now();
  const rows = sizes.map((size) => new Float32Array(size));
  const whole = errorOf(() => compute(items, rows));
  const errors = items.map((item, i) => {
    if (whole === null || items.length === 1) return whole;
    return errorOf(() => compute([item], [rows[i]!]));
  });
  for (const [i, place] of rows.entries()) {
    if (errors[i] !== null || firstNotFinite(place) < 0) continue;
    errors[i] = `The network gave values that are not finite for this ${noun}.`;
    place.fill(0);
  }
  return { type: 'rows', rows, errors, forwardMs: performance.now() - startMs };
}

/** @returns the message of what `run` throws; null: nothing */
function errorOf(run: () => void): string | null {
  try {
    run();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
