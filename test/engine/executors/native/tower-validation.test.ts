import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTowerEngine } from '../../../../engine/building/tower-engine.js';
import type { Executor, ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { wasmKind } from '../../../../engine/kinds/wasm-kind.js';
import { TOWER_TOKENS_PER_BLOCK, TowerBatch, towerBlocks } from '../../../../engine/tower/tower-batch.js';
import type { NetworkPlan, PlanOp } from '../../../../network/plan.js';
import { TestEngines } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { type MadeTower, madePictures, madeTower, writeMadeTower } from '../../../support/made-towers.js';

const LIMITS = { maxRows: 64, maxPictures: 4 };
const OPTIONS: ExecutorOptions = {
  threads: 1,
  maxNumTokens: LIMITS.maxRows,
  maxNumSequences: LIMITS.maxPictures,
  maxSeqLen: LIMITS.maxRows,
  maxLogitRows: LIMITS.maxRows,
  numBlocks: towerBlocks(LIMITS),
  tokensPerBlock: TOWER_TOKENS_PER_BLOCK,
  kvDtype: 'f32',
};
const MADE = madeTower('qwen3-vl');
const WINDOWED = madeTower('qwen2.5-vl');

const folder = temporaryFolder('skein-tower');
const engines = new TestEngines();
type Engine = ReturnType<typeof openTowerEngine>;
let engine: Engine;
let windowed: Engine;
let executor: NativeExecutor;
beforeAll(async () => {
  const opened = async (made: MadeTower) =>
    openTowerEngine((await engines.get(writeMadeTower(folder, made), 'f32')).directory);
  [engine, windowed] = await Promise.all([opened(MADE), opened(WINDOWED)]);
  executor = new NativeExecutor(engine.loadable, OPTIONS);
});
afterAll(() => {
  executor.close();
  engines.remove();
});

function batch({ config }: Engine = engine, made = MADE, limits = LIMITS): TowerBatch {
  const packed = new TowerBatch(config, limits);
  packed.pack(madePictures(made));
  return packed;
}

/** The batch's fields as an object's own. */
function fieldsOf(made: TowerBatch) {
  const counts = ['numTokens', 'numSequences', 'numLogitRows', 'numNewBlocks', 'maxBlocks'] as const;
  const arrays = ['tokenIds', 'positions', 'slots', 'queryStart', 'contextLength', 'blockTables'] as const;
  const others = ['logitRows', 'newBlocks', 'ropeRows', 'ropeFrequencies', 'ropeScales'] as const;
  const own = ['tokenTypes', 'gridPositions', 'rowInputs', 'places', 'placeShares', 'segments'] as const;
  const fields = [...counts, ...arrays, ...others, ...own];
  return Object.fromEntries(fields.map((field) => [field, made[field]]));
}

describe("a tower's batch", () => {
  it.each<[string, (batch: TowerBatch) => object, string]>([
    ['a place after the table', ({ places }) => ({ places: places!.with(5, 16) }), 'places[5] is 16'],
    ['too few places', ({ places }) => ({ places: places!.subarray(0, 20) }), 'places'],
    ['too few shares', ({ placeShares }) => ({ placeShares: placeShares!.subarray(0, 20) }), 'placeShares'],
    ['no places', () => ({ places: null }), 'places'],
    ['too few patches', ({ rowInputs }) => ({ rowInputs: rowInputs.subarray(0, 24) }), 'rowInputs'],
    [
      'a square that is cut off',
      ({ logitRows }) => ({ logitRows: logitRows.with(2, 26) }),
      'logitRows[2] is 26',
    ],
  ])('is refused with %s', (_, change, message) => {
    const made = batch();
    const plain = fieldsOf(made);
    expect(executor.forward(plain as never).length).toBeGreaterThan(0);
    expect(() => executor.forward({ ...plain, ...change(made) } as never)).toThrow(message);
  });

  const limits = { ...LIMITS, maxRows: 96 };
  let executors: readonly Executor[];
  beforeAll(async () => {
    const options = { ...OPTIONS, maxNumTokens: 96, maxSeqLen: 96, numBlocks: towerBlocks(limits) };
    executors = [
      new NativeExecutor(windowed.loadable, options),
      await wasmKind.open(windowed.loadable, options),
    ];
  });
  afterAll(() => {
    for (const one of executors) one.close();
  });

  it.each<[string, (segments: Int32Array) => Int32Array | null, string]>([
    ['none', () => null, 'segments'],
    ['too few', (segments) => segments.subarray(0, 20), 'segments has 20 entries'],
    ['one that begins elsewhere', (segments) => segments.with(2, 1), 'segments of row 1 are 1 to 16'],
    ['one that ends before its row', (segments) => segments.fill(0, 0, 2), 'segments of row 0 are 0 to 0'],
    ['rows that differ', (segments) => segments.with(5, 15), 'segments of row 2 are 0 to 15'],
    [
      'one that leaves its sequence',
      (segments) => segments.map((one) => (one === 60 ? 61 : one)),
      'must lie one after the other in a sequence of 60',
    ],
  ])('is refused where its segments are %s', async (_, change, message) => {
    const made = batch(windowed, WINDOWED, limits);
    const changed = change(made.segments!.slice()) ?? undefined;
    for (const one of executors) expect(one.forward(made).length).toBeGreaterThan(0);
    Object.assign(made, { segments: changed });
    for (const one of executors) expect(() => one.forward(made)).toThrow(message);
  });

  it('is refused where what is added is scaled by a vector that does not fit, or by no vector', async () => {
    const { directory } = await engines.get(writeMadeTower(folder, madeTower('internvl')), 'f32');
    const { loadable } = openTowerEngine(directory);
    type AddScaled = Extract<PlanOp, { op: 'addScaled' }>;
    const open = (change: (op: AddScaled) => AddScaled) => () => {
      const ops = loadable.plan.ops.map((op) => (op.op === 'addScaled' ? change(op) : op));
      return new NativeExecutor({ ...loadable, plan: { ...loadable.plan, ops } }, OPTIONS);
    };
    expect(open((op) => ({ ...op, weight: 'layers.0.qkv' }))).toThrow('must be a vector of 16');
    expect(open((op) => ({ ...op, weight: 'layers.0.up.bias' }))).toThrow('must be a vector of 16');
    expect(open((op) => ({ ...op, input: op.output }))).toThrow('input and output share slot');
    open((op) => op)().close();
  });

  it('is refused with rows that make one of too many', () => {
    const { plan } = engine.loadable;
    const merging = (rows: number): NetworkPlan => ({
      ...plan,
      ops: plan.ops.map((op) => (op.op === 'selectRows' ? { ...op, rows } : op)),
    });
    const open = (rows: number) => () =>
      new NativeExecutor({ ...engine.loadable, plan: merging(rows) }, OPTIONS);
    expect(open(0)).toThrow('rows must be from 1 to 1024');
    expect(open(2)).toThrow('(selectRows)');
  });
});
