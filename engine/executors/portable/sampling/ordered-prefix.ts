/** Number of entries that are put in order at first. */
const FIRST_BLOCK = 64;

type Compare = (a: number, b: number) => number;

/**
 * Puts `ids` in order until `visit` returns false, no more of them than needed: blocks of growing size are selected and
 * sorted. Returns the number visited, which stand first. `compare` is never 0.
 *
 *   ids    | in order and visited | in order | after these, in any order  |
 */
export function visitInOrder(ids: Int32Array, compare: Compare, visit: (id: number) => boolean): number {
  let ordered = 0;
  for (let visited = 0; visited < ids.length; visited++) {
    if (visited === ordered) {
      ordered = Math.min(ids.length, Math.max(FIRST_BLOCK, 2 * ordered));
      if (ordered < ids.length) select(ids, visited, ordered, compare);
      ids.subarray(visited, ordered).sort(compare);
    }
    if (!visit(ids[visited]!)) return visited + 1;
  }
  return ids.length;
}

/** Moves the entries that come first in order to the places from `begin` up to `end`, in any order. */
function select(ids: Int32Array, begin: number, end: number, compare: Compare): void {
  let low = begin;
  let high = ids.length - 1;
  while (low < high) {
    const pivot = ids[(low + high) >>> 1]!;
    let [i, j] = [low, high];
    while (i <= j) {
      while (compare(ids[i]!, pivot) < 0) i++;
      while (compare(ids[j]!, pivot) > 0) j--;
      if (i > j) break;
      const other = ids[i]!;
      ids[i++] = ids[j]!;
      ids[j--] = other;
    }
    if (end - 1 <= j) high = j;
    else if (end - 1 >= i) low = i;
    else return;
  }
}
