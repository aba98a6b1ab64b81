import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import { staysInCache } from '../portable/cache-places.js';
import { filledRows, type RowRule } from './row-rule.js';

/** Number of key places that one product takes at a time, roughly: whole blocks of them. */
const UNIT_PLACES = 64;
/**
 * Number of a chunk's rows in a tile, which are multiplied with the same keys at once. A multiple of six, see
 * row-rule.ts.
 */
export const TILE_ROWS = 36;
/** Least number of rows for tiles: a sequence with fewer (a generation, with its draft) has a unit for each row. */
const ROWS_OF_TILES = 5;

/** Layout of the cache in its variables, in blocks. */
export interface PoolShape {
  tokensPerBlock: number;
  numKvHeads: number;
  window: AttentionWindow | null;
  /** Whether a row sees also what follows it. */
  bothWays: boolean;
  /** Whether a step has each of its sequences as a whole. */
  takesWhole: boolean;
  /** Number of a block that always holds zeros, for the part of a unit beyond its sequence. */
  zeroBlock: number;
  /** Number of a block that takes the rows which only fill up a step. */
  wasteBlock: number;
  /** First of the blocks that hold chunks separately while they run; see FreshChunk. */
  firstFreshBlock: number;
}

export const blocksPerUnit = (tokensPerBlock: number) =>
  Math.max(1, Math.floor(UNIT_PLACES / tokensPerBlock));
/** Number of keys of a unit. */
export const unitPlaces = (tokensPerBlock: number) => blocksPerUnit(tokensPerBlock) * tokensPerBlock;

/** Consecutive rows of T of one sequence. */
export interface Piece {
  sequence: number;
  /** First row of T. */
  first: number;
  count: number;
  /** Place of the first row in its sequence. */
  place: number;
}

/**
 * Attention of a step, cut into units of fixed size whatever the sequences' lengths: one row, or one tile of rows, and the keys
 * of one stretch of places. Units of the same owner are added up afterwards by its number:
 *
 *   sequence of 150 tokens    [ 0 .. 63 | 64 .. 127 | 128 .. 149 - ]     3 units, the rest of the last one masked
 *                                 \          |           /
 *   rows or tiles                  '--- segment number --'
 *
 * A unit begins at a multiple of its length in every step, so that a row's sums are always the same.
 */
export interface Units {
  /** Owner of each unit [U], a row of T or a tile; ascending. */
  owner: number[];
  /** Blocks of the pool [U x blocks of a unit]. */
  blocks: number[];
  /** Place in its sequence of each key, -1: none [U x places of a unit]. */
  places: number[];
}

/**
 * A chunk that is kept in separate blocks while it runs, since with a window its late rows would write over keys that
 * its early rows attend to.
 */
interface FreshChunk {
  firstBlock: number;
  /** Number of that block in the pool; the chunk's other blocks follow. */
  target: number;
}

/** A step's rows as the graph takes them; these are the step's rows, filled up as the rule demands. */
export interface PackedStep {
  /** Row of T of each row; -1: the row only fills up. */
  rows: number[];
  /** Places that K and V are written to [rows x kvHeads x (first axis, offset)]. */
  writes: number[];
  /** Units of single rows. Owners are numbers of these rows. */
  single: Units;
  /** Row of the step for each owner. */
  singleRows: number[];
  singlePlaces: number[];
  tiles: Units;
  /** Rows of each tile [tiles x TILE_ROWS]; a tile with fewer rows repeats row 0, at place -1. */
  tileRows: number[];
  tilePlaces: number[];
  /** Index of each row among the results: singles, then the tiles' rows. */
  results: number[];
  /**
   * Blocks to be zeroed in addition to the batch's own, and blocks to be copied from the cache before anything is
   * written.
   */
  freshBlocks: number[];
  copies: { source: number[]; target: number[] };
  /** Rows that the cache keeps of separately held chunks, and their places. */
  kept: { rows: number[]; writes: number[] };
}

export function packStep(
  batch: PackedBatch,
  pieces: readonly Piece[],
  pool: PoolShape,
  rule: RowRule,
): PackedStep {
  const step: PackedStep = {
    rows: [],
    writes: [],
    single: { owner: [], blocks: [], places: [] },
    singleRows: [],
    singlePlaces: [],
    tiles: { owner: [], blocks: [], places: [] },
    tileRows: [],
    tilePlaces: [],
    results: [],
    freshBlocks: [],
    copies: { source: [], target: [] },
    kept: { rows: [], writes: [] },
  };
  const tileResults: { row: number; result: number }[] = [];
  for (const piece of pieces) {
    const fresh = pool.window !== null && piece.count > 1 ? keepApart(batch, piece, pool, step) : null;
    const first = step.rows.length;
    for (let i = 0; i < piece.count; i++) {
      step.rows.push(piece.first + i);
      writeRow(batch, piece, i, pool, fresh, step);
    }
    if (piece.count < ROWS_OF_TILES) {
      for (let i = 0; i < piece.count; i++) addSingle(batch, piece, i, first + i, pool, fresh, step);
    } else {
      for (let i = 0; i < piece.count; i += TILE_ROWS) {
        const rows = Math.min(TILE_ROWS, piece.count - i);
        const tile = addTile(batch, piece, i, rows, first, pool, fresh, step);
        for (let r = 0; r < rows; r++) tileResults.push({ row: first + i + r, result: tile * TILE_ROWS + r });
      }
    }
  }
  const filled = filledRows(step.rows.length, rule);
  while (step.rows.length < filled) addFiller(pool, step);
  fillUnits(pool, rule, step);
  for (const { row, result } of tileResults) step.results[row] = step.singleRows.length + result;
  return step;
}

function slotsOf(block: number, offset: number, { numKvHeads }: PoolShape, writes: number[]): void {
  for (let head = 0; head < numKvHeads; head++) writes.push(block * numKvHeads + head, offset);
}

function keepApart(batch: PackedBatch, piece: Piece, pool: PoolShape, step: PackedStep): FreshChunk {
  const { tokensPerBlock } = pool;
  const firstBlock = Math.floor(piece.place / tokensPerBlock);
  const endBlock = Math.ceil((piece.place + piece.count) / tokensPerBlock);
  const target = pool.firstFreshBlock + step.freshBlocks.length;
  for (let block = firstBlock; block < endBlock; block++) step.freshBlocks.push(target + block - firstBlock);
  if (piece.place % tokensPerBlock > 0) {
    step.copies.source.push(blockOf(batch, piece.sequence, firstBlock, pool));
    step.copies.target.push(target);
  }
  return { firstBlock, target };
}

function blockOf(batch: PackedBatch, sequence: number, block: number, { window }: PoolShape): number {
  return batch.blockTables[sequence * batch.maxBlocks + (window?.entryOf(block) ?? block)]!;
}

function writeRow(
  batch: PackedBatch,
  piece: Piece,
  i: number,
  pool: PoolShape,
  fresh: FreshChunk | null,
  step: PackedStep,
): void {
  const { tokensPerBlock } = pool;
  const place = piece.place + i;
  const offset = place % tokensPerBlock;
  const slot = batch.slots[piece.first + i]!;
  if (fresh === null) {
    slotsOf(Math.floor(slot / tokensPerBlock), slot % tokensPerBlock, pool, step.writes);
    return;
  }
  const block = fresh.target + Math.floor(place / tokensPerBlock) - fresh.firstBlock;
  slotsOf(block, offset, pool, step.writes);
  if (!staysInCache(place, piece.place + piece.count, pool)) return;
  step.kept.rows.push(step.rows.length - 1);
  slotsOf(Math.floor(slot / tokensPerBlock), slot % tokensPerBlock, pool, step.kept.writes);
}

function addSingle(
  batch: PackedBatch,
  piece: Piece,
  i: number,
  row: number,
  pool: PoolShape,
  fresh: FreshChunk | null,
  step: PackedStep,
): void {
  const place = piece.place + i;
  step.results[row] = step.singleRows.length;
  addUnits(batch, piece, { from: place, to: place }, pool, fresh, step.single, step.singleRows.length);
  step.singleRows.push(row);
  step.singlePlaces.push(place);
}

function addTile(
  batch: PackedBatch,
  piece: Piece,
  i: number,
  rows: number,
  first: number,
  pool: PoolShape,
  fresh: FreshChunk | null,
  step: PackedStep,
): number {
  const tile = step.tileRows.length / TILE_ROWS;
  const from = piece.place + i;
  addUnits(batch, piece, { from, to: from + rows - 1 }, pool, fresh, step.tiles, tile);
  for (let r = 0; r < TILE_ROWS; r++) {
    step.tileRows.push(r < rows ? first + i + r : 0);
    step.tilePlaces.push(r < rows ? from + r : -1);
  }
  return tile;
}

/** Adds units for the keys that rows at places `from` to `to` may see. */
function addUnits(
  batch: PackedBatch,
  piece: Piece,
  { from, to }: { from: number; to: number },
  pool: PoolShape,
  fresh: FreshChunk | null,
  units: Units,
  owner: number,
): void {
  const { tokensPerBlock, window, bothWays } = pool;
  const inUnit = blocksPerUnit(tokensPerBlock);
  const unitPlaces = inUnit * tokensPerBlock;
  const end = bothWays ? batch.contextLength[piece.sequence]! : to + 1;
  const recent =
    window === null ? 0 : Math.max(0, from + 1 - (window.maxAttentionWindow - window.sinkTokenLength));
  const sinkUnits = Math.ceil((window?.sinkTokenLength ?? 0) / unitPlaces);
  // The latest place written into the cache itself, where each place is written over the one a ring before it.
  const written = fresh === null ? to : piece.place - 1;
  for (let unit = 0; unit * unitPlaces < end; unit++) {
    if (unit >= sinkUnits && (unit + 1) * unitPlaces <= recent) continue;
    units.owner.push(owner);
    for (let i = 0; i < inUnit; i++) {
      const block = unit * inUnit + i;
      const isFresh = fresh !== null && block >= fresh.firstBlock;
      const isThere = block * tokensPerBlock < end;
      const held = isFresh
        ? fresh.target + block - fresh.firstBlock
        : isThere
          ? blockOf(batch, piece.sequence, block, pool)
          : 0;
      units.blocks.push(isThere ? held : pool.zeroBlock);
      const stays =
        window === null || isFresh || block < window.sinkBlocks
          ? Number.POSITIVE_INFINITY
          : window.ringBlocks * tokensPerBlock;
      for (let place = block * tokensPerBlock; place < (block + 1) * tokensPerBlock; place++) {
        units.places.push(isThere && place < end && place + stays > written ? place : -1);
      }
    }
  }
}

function addFiller(pool: PoolShape, step: PackedStep): void {
  const row = step.rows.length;
  step.rows.push(-1);
  slotsOf(pool.wasteBlock, 0, pool, step.writes);
  step.results[row] = step.singleRows.length;
  addEmptyUnit(pool, step.single, step.singleRows.length);
  step.singleRows.push(row);
  step.singlePlaces.push(-1);
}

/** Adds units without an owner after the others, so that threads share the units evenly. */
function fillUnits(pool: PoolShape, { attentionProducts }: RowRule, step: PackedStep): void {
  const { single, tiles } = step;
  const isUneven = ({ owner }: Units) => (owner.length * pool.numKvHeads) % attentionProducts > 0;
  if (isUneven(single)) {
    while (isUneven(single)) addEmptyUnit(pool, single, step.singleRows.length);
    step.singleRows.push(0);
    step.singlePlaces.push(-1);
  }
  if (isUneven(tiles)) {
    while (isUneven(tiles)) addEmptyUnit(pool, tiles, step.tileRows.length / TILE_ROWS);
    for (let r = 0; r < TILE_ROWS; r++) {
      step.tileRows.push(0);
      step.tilePlaces.push(-1);
    }
  }
}

function addEmptyUnit(pool: PoolShape, units: Units, owner: number): void {
  const inUnit = blocksPerUnit(pool.tokensPerBlock);
  units.owner.push(owner);
  for (let i = 0; i < inUnit; i++) units.blocks.push(pool.zeroBlock);
  for (let i = 0; i < inUnit * pool.tokensPerBlock; i++) units.places.push(-1);
}

/** Number of units that a piece takes, roughly: it bounds a step's memory. */
export function countUnits({ place, count }: Piece, length: number, pool: PoolShape): number {
  const { tokensPerBlock, window, bothWays } = pool;
  const places = unitPlaces(tokensPerBlock);
  const seen = Math.min(
    bothWays ? length : place + count,
    (window?.cachedTokens ?? Number.POSITIVE_INFINITY) + count + places,
  );
  const owners = count < ROWS_OF_TILES ? count : Math.ceil(count / TILE_ROWS);
  return owners * Math.ceil(seen / places + 1);
}
