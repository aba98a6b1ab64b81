import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTowerEngine } from '../../../../engine/building/tower-engine.js';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import { TOWER_TOKENS_PER_BLOCK, TowerBatch, towerBlocks } from '../../../../engine/tower/tower-batch.js';
import type { NetworkPlan } from '../../../../network/plan.js';
import { TestEngines } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { madePictures, madeTower, writeMadeTower } from '../../../support/made-towers.js';

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

const engines = new TestEngines();
let engine: ReturnType<typeof openTowerEngine>;
let executor: NativeExecutor;
beforeAll(async () => {
  const { directory } = await engines.get(writeMadeTower(temporaryFolder('skein-tower'), MADE), 'f32');
  engine = openTowerEngine(directory);
  executor = new NativeExecutor(engine.loadable, OPTIONS);
});
afterAll(() => {
  executor.close();
  engines.remove();
});

function batch(): TowerBatch {
  const made = new TowerBatch(engine.config, LIMITS);
  made.pack(madePictures(MADE));
  return made;
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
    const fields = ['numTokens', 'numSequences', 'numLogitRows', 'numNewBlocks', 'maxBlocks'] as const;
    const counts = Object.fromEntries(fields.map((field) => [field, made[field]]));
    const arrays = ['tokenIds', 'positions', 'slots', 'queryStart', 'contextLength', 'blockTables'] as const;
    const others = ['logitRows', 'newBlocks', 'ropeRows', 'ropeFrequencies', 'ropeScales'] as const;
    const own = ['tokenTypes', 'gridPositions', 'rowInputs', 'places', 'placeShares'] as const;
    const copied = Object.fromEntries([...arrays, ...others, ...own].map((field) => [field, made[field]]));
    const plain = { ...counts, ...copied };
    expect(executor.forward(plain as never).length).toBeGreaterThan(0);
    expect(() => executor.forward({ ...plain, ...change(made) } as never)).toThrow(message);
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
