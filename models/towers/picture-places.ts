import { PLACES_OF_TOKEN } from '../../network/plan.js';
import { becomesOneRow, type TowerConfig } from './tower-config.js';

/** Patches of a picture, in rows and columns. */
export interface PictureGrid {
  rows: number;
  columns: number;
}

/** Rows of a tower's sequence for one picture: patches in the order of squares, window by window, after a row of the tower's own. */
export interface PicturePlaces {
  /** Number of rows. */
  length: number;
  /** Patch of each row [length]; -1: all zeros. */
  patches: Int32Array;
  /** Row of the table of learned positions [length]. */
  positions: Int32Array;
  /** 1 for the tower's own row, else 0 [length]. */
  types: Int32Array;
  /** Row and column of each patch [length x 2]. */
  grid: Int32Array;
  /** Four places in the square of positions and the share of each [length x PLACES_OF_TOKEN]; null: positions are not stretched. */
  places: Int32Array | null;
  shares: Float32Array | null;
  /** First row of each square, in the order of the output. */
  squares: Int32Array;
  /** First row of each row's window, and the row after its last [length x 2]; null: there are no windows. */
  segments: Int32Array | null;
}

type Placed = Pick<
  TowerConfig,
  'kind' | 'connector' | 'merge' | 'inSquares' | 'positionSide' | 'anyGrid' | 'ropeTheta' | 'windows'
>;

/** Rows of a picture's sequence, a row of the tower's own included. */
export function sequenceLength({ kind }: Pick<TowerConfig, 'kind'>, { rows, columns }: PictureGrid): number {
  return rows * columns + (kind === 'clip' || kind === 'internvl' ? 1 : 0);
}

/** Rows of the output that a picture becomes. */
export function pictureRows(
  { merge, connector }: Pick<TowerConfig, 'merge' | 'connector'>,
  { rows, columns }: PictureGrid,
): number {
  return becomesOneRow(connector) ? 1 : (rows * columns) / merge ** 2;
}

/** Why a tower cannot see a grid of patches; null: it can. */
export function whyUnseen(
  {
    merge,
    positionSide,
    anyGrid,
    connector,
    kind,
  }: Pick<TowerConfig, 'merge' | 'positionSide' | 'anyGrid' | 'connector' | 'kind'>,
  { rows, columns }: PictureGrid,
): string | null {
  const found = `${rows} x ${columns}`;
  if (!anyGrid && (rows !== positionSide || columns !== positionSide))
    return `A picture has ${found} patches; ${positionSide} x ${positionSide} are taken.`;
  const isRight = [rows, columns].every(
    (side) => Number.isSafeInteger(side) && side > 0 && side % merge === 0,
  );
  if (!isRight) return `A picture has ${found} patches; multiples of ${merge} are taken.`;
  if (kind === 'gemma4' && Math.max(rows, columns) > positionSide)
    return `A picture has ${found} patches; up to ${positionSide} on a side are taken.`;
  if (connector.kind === 'shuffle' && (rows !== columns || rows > positionSide))
    return `A picture has ${found} patches; as many rows as columns are taken, up to ${positionSide}.`;
  return null;
}

/** The places of a picture's patches, for a grid that the tower sees. */
export function placesOf(config: Placed, given: PictureGrid): PicturePlaces {
  const { kind, connector, merge, inSquares, positionSide, windows } = config;
  const length = sequenceLength(config, given);
  const before = length - given.rows * given.columns;
  const made = emptyPlaces(length, pictureRows(config, given), hasPlaces(config));
  const across = given.columns / merge;
  if (before > 0) [made.patches[0], made.types[0]] = [-1, 1];
  const isOne = becomesOneRow(connector);
  const [ofRow, ofColumn] = [given.rows, given.columns].map((count) => positionsOf(config, count));
  let row = before;
  eachPatch(given, merge, windows?.side, (y, x) => {
    const square = Math.floor(y / merge) * across + Math.floor(x / merge);
    const inside = (y % merge) * merge + (x % merge);
    made.patches[row] = inSquares ? square * merge ** 2 + inside : y * given.columns + x;
    made.positions[row] = before + ofRow![y]! * positionSide + ofColumn![x]!;
    made.grid.set([y, x], 2 * row);
    if (kind === 'gemma4') setTwo(made, row, x, positionSide + y);
    // A picture that becomes one row has that of its sequence's beginning.
    if (inside === 0 && !isOne) made.squares[square] = row;
    row++;
  });
  if (kind === 'qwen') stretch(made, given, positionSide);
  return windows === undefined ? made : { ...made, segments: segmentsOf(given, merge * windows.side) };
}

/** True for a tower that adds several rows of the table of positions to each patch. */
export const hasPlaces = ({ kind }: Pick<TowerConfig, 'kind'>): boolean =>
  kind === 'qwen' || kind === 'gemma4';

/** Gives a row two places of the table, each whole. */
function setTwo({ places, shares }: PicturePlaces, row: number, one: number, other: number): void {
  places!.set([one, other], row * PLACES_OF_TOKEN);
  shares!.set([1, 1], row * PLACES_OF_TOKEN);
}

function emptyPlaces(length: number, squares: number, isStretched: boolean): PicturePlaces {
  const entries = length * PLACES_OF_TOKEN;
  return {
    length,
    patches: new Int32Array(length),
    positions: new Int32Array(length),
    types: new Int32Array(length),
    grid: new Int32Array(2 * length),
    places: isStretched ? new Int32Array(entries) : null,
    shares: isStretched ? new Float32Array(entries) : null,
    squares: new Int32Array(squares),
    segments: null,
  };
}

/** A part of a picture, in patches. */
interface Part extends PictureGrid {
  top: number;
  left: number;
}

/** Cuts a part into squares of `side` patches, row by row; those at its end may be smaller. */
function* cut({ top, left, rows, columns }: Part, side: number): Generator<Part> {
  for (let y = 0; y < rows; y += side)
    for (let x = 0; x < columns; x += side)
      yield {
        top: top + y,
        left: left + x,
        rows: Math.min(side, rows - y),
        columns: Math.min(side, columns - x),
      };
}

/** Calls `each` for all patches, window by window, in each square by square, and in each row by row. @param side squares of a window's side; absent: there is one window */
function eachPatch(
  grid: PictureGrid,
  merge: number,
  side: number | undefined,
  each: (y: number, x: number) => void,
): void {
  const whole = { top: 0, left: 0, ...grid };
  for (const window of side === undefined ? [whole] : cut(whole, merge * side))
    for (const square of cut(window, merge)) for (const { top, left } of cut(square, 1)) each(top, left);
}

/** Windows of `side` patches as segments of the picture's rows. */
function segmentsOf(grid: PictureGrid, side: number): Int32Array {
  const segments = new Int32Array(2 * grid.rows * grid.columns);
  let begin = 0;
  for (const { rows, columns } of cut({ top: 0, left: 0, ...grid }, side)) {
    const end = begin + rows * columns;
    for (let row = begin; row < end; row++) segments.set([begin, end], 2 * row);
    begin = end;
  }
  return segments;
}

/**
 * Row of the learned positions for each of `count` rows of patches, as transformers finds it in float32: the number of borders
 * k / side (k = 1, 2, ...) that are at or before i / count.
 */
function positionsOf({ ropeTheta, anyGrid, positionSide: side }: Placed, count: number): number[] {
  const { fround } = Math;
  if (!anyGrid || ropeTheta !== undefined) return Array.from({ length: count }, (_, i) => i);
  const step = 1 / side;
  const borders: number[] = [];
  for (let k = 0; step + k * step < 1; k++) borders.push(fround(step + k * step));
  const most = fround(1 - 1e-6);
  return Array.from({ length: count }, (_, i) => {
    const at = Math.min(fround(i * fround(1 / count)), most);
    return borders.filter((border) => border <= at).length;
  });
}

/** Stretches the square of positions over the picture: a patch has a share of those around it, by distance in both directions. */
function stretch(
  { grid, places, shares, length }: PicturePlaces,
  { rows, columns }: PictureGrid,
  side: number,
): void {
  for (let row = 0; row < length; row++) {
    const down = neighbours(grid[2 * row]!, rows, side);
    const across = neighbours(grid[2 * row + 1]!, columns, side);
    for (let j = 0; j < PLACES_OF_TOKEN; j++) {
      const [one, other] = [down[j >> 1]!, across[j & 1]!];
      places![row * PLACES_OF_TOKEN + j] = one.place * side + other.place;
      shares![row * PLACES_OF_TOKEN + j] = Math.fround(one.share * other.share);
    }
  }
}

/** The two positions around row i of `count`, where the first and the last lie on those of the square, in float32 as transformers has them. */
function neighbours(i: number, count: number, side: number): { place: number; share: number }[] {
  const { fround } = Math;
  const at = fround((i * (side - 1)) / Math.max(1, count - 1));
  const first = Math.floor(at);
  return [0, 1].map((offset) => ({
    place: Math.min(first + offset, side - 1),
    share: fround(1 - Math.abs(fround(fround(at - first) - offset))),
  }));
}
