/** States of a block. */
export const FREE = 0;
export const USED = 1;
export const CACHED = 2;
export const SHARED = 3;
export const NUM_KINDS = 4;

/** Cells of equal size in rows, each for one block, or for several where the blocks outnumber the room. */
export interface BlockLayout {
  columns: number;
  rows: number;
  /** Side of a cell without its gap, in CSS pixels. */
  size: number;
  gap: number;
  blocksPerCell: number;
  cells: number;
}

const LARGEST_PITCH = 16;
/** Smallest distance of cells that can be told apart: below it a cell stands for several blocks. */
const SMALLEST_PITCH = 5;

/**
 * Layout with the largest cells at which all blocks fit; where the smallest are too large, with several blocks to a
 * cell.
 */
export function layoutBlocks(count: number, width: number, height: number): BlockLayout {
  const at = (pitch: number) => {
    const columns = Math.max(1, Math.floor(width / pitch));
    const rows = Math.max(1, Math.floor(height / pitch));
    return { columns, rows };
  };
  let pitch = LARGEST_PITCH;
  while (pitch > SMALLEST_PITCH && at(pitch).columns * at(pitch).rows < count) pitch--;
  const { columns, rows } = at(pitch);
  const blocksPerCell = Math.max(1, Math.ceil(count / (columns * rows)));
  const cells = Math.ceil(count / blocksPerCell);
  const gap = pitch >= 9 ? 2 : 1;
  return {
    columns,
    rows: Math.max(1, Math.ceil(cells / columns)),
    size: pitch - gap,
    gap,
    blocksPerCell,
    cells,
  };
}

/** Fewest blocks that a map shows, if the pool has them. */
const FEWEST_SHOWN = 64;

/**
 * Number of blocks that a map shows, from the first on: the pool up to its last block that is not free, and room to grow.
 * Grows and shrinks by powers of two, and shrinks late, so that the picture does not jump.
 * @param before the number shown until now
 */
export function blocksShown(runs: readonly number[], count: number, before: number): number {
  let end = 0;
  for (let i = 0, at = 0; i + 1 < runs.length; i += 2) {
    at += runs[i]!;
    if (kindOf(runs[i + 1]!) !== FREE) end = at;
  }
  const needed = Math.max(FEWEST_SHOWN, Math.ceil(1.25 * end));
  const fitting = 2 ** Math.ceil(Math.log2(needed));
  if (before >= needed && before <= 4 * fitting) return Math.min(before, count);
  // A map of more than half of the pool can as well have all of it.
  return 2 * fitting > count ? count : fitting;
}

/** Content of all cells. */
export interface BlockCells {
  /** Number of blocks of each kind in each cell: FREE, USED, CACHED, SHARED. */
  counts: Uint32Array;
  /** Owner of most used blocks of each cell, the first of equals: a row of the formation; -1: none. */
  owners: Int32Array;
  /** Number of blocks of each kind in the pool. */
  totals: [free: number, used: number, cached: number, shared: number];
}

/** Kind of a run of blocks, by its owner in formation events. */
export function kindOf(owner: number): number {
  if (owner >= 0) return USED;
  return owner === -2 ? CACHED : owner === -3 ? SHARED : FREE;
}

/**
 * Fills cells.
 * @param runs [length, owner, length, owner, ...], in the order of the pool; blocks that the layout has no cells for count
 * in the totals alone
 * @param count number of blocks of the pool; what runs have beyond it is left out
 */
export function fillCells(
  runs: readonly number[],
  { cells, blocksPerCell }: BlockLayout,
  count = cells * blocksPerCell,
): BlockCells {
  const counts = new Uint32Array(cells * NUM_KINDS);
  const owners = new Int32Array(cells).fill(-1);
  const most = new Uint32Array(cells);
  const totals: BlockCells['totals'] = [0, 0, 0, 0];
  let cell = 0;
  let room = blocksPerCell;
  let rest = count;
  /** Number of blocks of the present cell, by owner. */
  const held = new Map<number, number>();
  for (let i = 0; i + 1 < runs.length; i += 2) {
    const owner = runs[i + 1]!;
    const kind = kindOf(owner);
    const length = Math.min(runs[i]!, rest);
    totals[kind]! += length;
    rest -= length;
    for (let left = length; left > 0 && cell < cells; ) {
      const taken = Math.min(left, room);
      counts[cell * NUM_KINDS + kind]! += taken;
      if (kind === USED) {
        const sum = (held.get(owner) ?? 0) + taken;
        held.set(owner, sum);
        if (sum > most[cell]!) {
          most[cell] = sum;
          owners[cell] = owner;
        }
      }
      left -= taken;
      room -= taken;
      if (room > 0) continue;
      cell++;
      room = blocksPerCell;
      held.clear();
    }
  }
  return { counts, owners, totals };
}

/** Number of blocks of one owner in each cell. */
export function blocksOf(
  owner: number,
  runs: readonly number[],
  { cells, blocksPerCell }: BlockLayout,
): Uint32Array {
  const held = new Uint32Array(cells);
  let block = 0;
  for (let i = 0; i + 1 < runs.length; i += 2) {
    const length = runs[i]!;
    if (runs[i + 1] === owner) {
      for (let at = block; at < block + length; at++) held[Math.floor(at / blocksPerCell)]! += 1;
    }
    block += length;
  }
  return held;
}
