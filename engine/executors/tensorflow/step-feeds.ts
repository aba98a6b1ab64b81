import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import { attendsByPlace } from '../../../network/attention-mask.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { promptRowWidth } from '../../../network/prompt-rows.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import { forEachPromptRow } from '../portable/embedding-rows.js';
import { writeRopeAngles } from '../portable/rope-angles.js';
import { blocksPerUnit, type PackedStep, type PoolShape, TILE_ROWS, type Units } from './attention-units.js';
import type { Feed } from './session.js';

export interface StepContext {
  plan: NetworkPlan;
  pool: PoolShape;
  window: AttentionWindow | null;
  /** Index of the hidden row that is never read. */
  wasteRow: number;
  /** True if rows of a step without tiles are looked up among results too. */
  looksUpResults: boolean;
}

/** Angles of a batch by the name of their feeds, for all rows of T. */
export type Angles = Record<string, Float32Array>;

/** Computes the angles of a batch: by the batch's own frequencies, by each table of the plan, and those for sinks. */
export function anglesOf(batch: PackedBatch, { plan, window }: StepContext): Angles {
  const { rotaryDim } = plan.attention;
  if (rotaryDim === 0) return {};
  const angles: Angles = {};
  const write = (
    name: string,
    choice: { table?: readonly number[]; axes?: readonly number[] | undefined; lastPosition?: number },
  ) => {
    const size = (batch.numTokens * rotaryDim) / 2;
    const [cosine, sine] = [new Float32Array(size), new Float32Array(size)];
    writeRopeAngles(batch, { rotaryDim, ...choice }, { cosine, sine });
    angles[`cosine${name}`] = cosine;
    angles[`sine${name}`] = sine;
  };
  const tables = new Set(plan.ops.flatMap((op) => (op.op === 'ropeAndCache' ? [op.table] : [])));
  for (const table of tables) {
    if (table === undefined) write('', { axes: plan.attention.ropeAxes });
    else write(String(table), { table: plan.attention.ropeTables![table]! });
  }
  if ((window?.sinkTokenLength ?? 0) > 0) write('Sinks', { lastPosition: window!.maxAttentionWindow - 1 });
  return angles;
}

/** Feeds of the forward graph of that name for a step. */
export function stepFeeds(
  scope: string,
  batch: PackedBatch,
  step: PackedStep,
  zeroedBlocks: readonly number[],
  angles: Angles,
  context: StepContext,
): Record<string, Feed> {
  const { plan, pool, window, wasteRow } = context;
  const byPlace = attendsByPlace(plan);
  const feeds: Record<string, Feed> = {};
  const feed = (name: string, values: ArrayLike<number>, shape = [values.length]) => {
    feeds[`${scope}/${name}`] = { values: Int32Array.from(values), shape };
  };
  const places = blocksPerUnit(pool.tokensPerBlock) * pool.tokensPerBlock;
  const feedUnits = (name: string, units: Units) => {
    feed(`${name}Owner`, units.owner);
    feed(`${name}Slices`, unitSlices(units.blocks, blocksPerUnit(pool.tokensPerBlock), pool.numKvHeads));
    feed(`${name}KeyPlaces`, units.places, [units.owner.length, places]);
  };
  feedUnits('single', step.single);
  if (byPlace) feed('singlePlaces', step.singlePlaces);
  const hasTiles = step.tiles.owner.length > 0;
  if (hasTiles || context.looksUpResults) {
    feed('singleRows', step.singleRows);
    feed('results', step.results);
  }
  if (hasTiles) {
    feedUnits('tile', step.tiles);
    feed('tileRows', step.tileRows);
    if (byPlace) feed('tilePlaces', step.tilePlaces, [step.tilePlaces.length / TILE_ROWS, TILE_ROWS]);
  }
  feed('writes', step.writes, [step.writes.length / 2, 2]);
  feed('zeroed', slicesOf([...zeroedBlocks, ...step.freshBlocks], pool.numKvHeads));
  feed(
    'hiddenRows',
    step.rows.map((row) => (row < 0 ? wasteRow : row)),
  );
  if (window !== null) {
    feed('copiesFrom', slicesOf(step.copies.source, pool.numKvHeads));
    feed('copiesTo', slicesOf(step.copies.target, pool.numKvHeads));
    feed('keptRows', step.kept.rows);
    feed('keptWrites', step.kept.writes, [step.kept.writes.length / 2, 2]);
  }
  for (const [name, values] of Object.entries(angles)) {
    const half = plan.attention.rotaryDim / 2;
    feeds[`${scope}/${name}`] = {
      values: rowsOf(values, step.rows, half),
      shape: [step.rows.length, 1, half],
    };
  }
  return Object.assign(feeds, embeddingFeeds(scope, batch, step, context));
}

function embeddingFeeds(
  scope: string,
  batch: PackedBatch,
  step: PackedStep,
  { plan }: StepContext,
): Record<string, Feed> {
  const feeds: Record<string, Feed> = {};
  const ofRows = (values: Int32Array, most: number) => ({
    values: Int32Array.from(step.rows, (row) => (row < 0 || values[row]! >= most ? 0 : values[row]!)),
    shape: [step.rows.length],
  });
  for (const op of plan.ops) {
    if (op.op === 'addEmbedding') {
      const ids =
        op.by === 'tokenIds' ? batch.tokenIds : op.by === 'positions' ? batch.positions : batch.tokenTypes!;
      const most = op.by === 'tokenIds' ? plan.vocabSize : Number.POSITIVE_INFINITY;
      feeds[`${scope}/${op.by}`] = ofRows(ids, most);
    }
    if (op.op !== 'embedding') continue;
    const width = promptRowWidth(plan);
    feeds[`${scope}/tokenIds`] = ofRows(batch.tokenIds, plan.vocabSize);
    const rowOf = new Map(step.rows.map((row, index) => [row, index]));
    const given: { row: number; values: Float32Array }[] = [];
    const part = { vocabSize: plan.vocabSize, stride: width, first: 0, width };
    forEachPromptRow(batch, part, (t, values) => {
      const row = rowOf.get(t);
      if (row !== undefined) given.push({ row, values });
    });
    const values = new Float32Array(given.length * width);
    for (const [i, one] of given.entries()) values.set(one.values, i * width);
    feeds[`${scope}/promptRows`] = {
      values: Int32Array.from(given, ({ row }) => row),
      shape: [given.length, 1],
    };
    feeds[`${scope}/promptValues`] = { values, shape: [given.length, width] };
  }
  return feeds;
}

/** Slices of the pool's first axis: block by block, each with its heads. */
export function slicesOf(blocks: ArrayLike<number>, numKvHeads: number): Int32Array {
  const slices = new Int32Array(blocks.length * numKvHeads);
  for (let i = 0; i < slices.length; i++)
    slices[i] = blocks[Math.floor(i / numKvHeads)]! * numKvHeads + (i % numKvHeads);
  return slices;
}

/** Slices unit by unit, head by head, each with its blocks. */
function unitSlices(blocks: readonly number[], inUnit: number, numKvHeads: number): Int32Array {
  const slices = new Int32Array(blocks.length * numKvHeads);
  let at = 0;
  for (let unit = 0; unit < blocks.length; unit += inUnit) {
    for (let head = 0; head < numKvHeads; head++) {
      for (let i = 0; i < inUnit; i++) slices[at++] = blocks[unit + i]! * numKvHeads + head;
    }
  }
  return slices;
}

/** Copies rows of a matrix; zeros for -1. */
function rowsOf(values: Float32Array, rows: readonly number[], width: number): Float32Array {
  const chosen = new Float32Array(rows.length * width);
  rows.forEach((row, i) => {
    if (row >= 0) chosen.set(values.subarray(row * width, (row + 1) * width), i * width);
  });
  return chosen;
}
