import { performance } from 'node:perf_hooks';
import { messageOf } from '../../base/error-text.js';
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
  const rows = new Float32Array(sizes.reduce((sum, size) => sum + size, 0));
  let end = 0;
  const places = sizes.map((size) => {
    end += size;
    return rows.subarray(end - size, end);
  });
  const whole = errorOf(() => compute(items, places));
  const errors = items.map((item, i) => {
    if (whole === null || items.length === 1) return whole;
    return errorOf(() => compute([item], [places[i]!]));
  });
  for (const [i, place] of places.entries()) {
    if (errors[i] !== null || place.every(Number.isFinite)) continue;
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
