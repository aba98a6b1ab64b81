import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ComparisonRecord, type Recorded } from '../../../tools/compare/record.js';
import type { Side } from '../../../tools/compare/side.js';
import { takeTurns } from '../../../tools/compare/take-turns.js';
import { freshFolders } from '../../support/fresh-folders.js';

const freshFolder = freshFolders('compare');
const file = () => join(freshFolder(), 'results', 'compare.json');
const CONDITIONS = {
  machine: { cpu: 'c', cores: 2, memoryGiB: 8, features: ['avx2'] },
  settings: { threads: 2 },
};
const COLUMNS = [
  { name: 'a', shape: 1 },
  { name: 'b', shape: 2 },
];

/** A side that notes its turns and measures its shape times `rate`; `seconds` of the test's clock go by. */
function sideOf(turns: string[], format: string, rate = 1, more: Partial<Side<number>> = {}): Side<number> {
  const name = `skein ${format}`;
  const measure = (shape: number) => {
    turns.push(`${name} ${shape}`);
    return { rate: rate * shape };
  };
  return { name, engine: 'skein', format, bytes: 1, version: 'v1', measure, ...more };
}

const quiet = { columns: COLUMNS, rounds: 2, minutes: 0, log: () => {} };

describe('takeTurns', () => {
  it('alternates the sides within each column, and turns their order round every other round', async () => {
    const turns: string[] = [];
    const record = ComparisonRecord.start(file(), CONDITIONS);
    const sides = [sideOf(turns, 'x'), sideOf(turns, 'y')];
    expect(await takeTurns({ ...quiet, sides }, record)).toBe(true);
    expect(turns).toEqual([
      ...['skein x 1', 'skein y 1', 'skein x 2', 'skein y 2'],
      ...['skein y 1', 'skein x 1', 'skein y 2', 'skein x 2'],
    ]);
    expect(record.values('skein x', 'b', 'rate')).toEqual([2, 2]);
  });

  it('keeps what it has when a side fails, and goes on behind it', async () => {
    const path = file();
    const turns: string[] = [];
    let isBroken = true;
    const measure = (shape: number) => {
      if (shape === 2 && isBroken) throw new Error('the server is gone');
      turns.push(`y ${shape}`);
      return { rate: shape };
    };
    const sides = [sideOf(turns, 'x'), sideOf(turns, 'y', 1, { measure })];
    const first = ComparisonRecord.start(path, CONDITIONS);
    await expect(takeTurns({ ...quiet, rounds: 1, sides }, first)).rejects.toThrow('the server is gone');
    expect(turns).toEqual(['skein x 1', 'y 1', 'skein x 2']);

    isBroken = false;
    turns.length = 0;
    const second = ComparisonRecord.resume(path, CONDITIONS);
    expect(await takeTurns({ ...quiet, rounds: 1, sides }, second)).toBe(true);
    expect(turns).toEqual(['y 2']);
    const { measurements } = JSON.parse(readFileSync(path, 'utf8')) as Recorded;
    expect(measurements.map(({ side, column }) => `${side} ${column}`)).toEqual([
      ...['skein x a', 'skein y a', 'skein x b', 'skein y b'],
    ]);
  });

  it('begins nothing that would end behind the limit by what it took before', async () => {
    let clock = 0;
    const turns: string[] = [];
    const measure = (shape: number) => {
      turns.push(`${shape}`);
      clock += shape === 1 ? 20_000 : 30_000;
      return { rate: 1 };
    };
    const path = file();
    const run = (rounds: number) => {
      const side = sideOf([], 'x', 1, { measure });
      const record = ComparisonRecord.resume(path, CONDITIONS);
      return takeTurns({ ...quiet, sides: [side], rounds, minutes: 2, now: () => clock }, record);
    };
    // 20 + 30 + 20 + 30 seconds; another 30 would not end in time after 20 more.
    expect(await run(4)).toBe(false);
    expect(turns).toEqual(['1', '2', '1', '2', '1']);
    expect(await run(4)).toBe(true);
    expect(turns).toEqual(['1', '2', '1', '2', '1', '2', '1', '2']);
  });

  it('measures anew what another version of a side gave', async () => {
    const path = file();
    const turns: string[] = [];
    const log: string[] = [];
    const run = (version: string) => {
      const sides = [sideOf(turns, 'x', 1, { version }), sideOf(turns, 'y')];
      const record = ComparisonRecord.resume(path, CONDITIONS);
      return takeTurns({ ...quiet, rounds: 1, sides, log: (line) => log.push(line) }, record);
    };
    await run('v1');
    turns.length = 0;
    await run('v1');
    expect(turns).toEqual([]);
    await run('v2');
    expect(turns).toEqual(['skein x 1', 'skein x 2']);
    expect(log).toContain('skein x has changed: 2 earlier measurements are dropped');
  });

  it('leaves out what a side does not measure', async () => {
    const turns: string[] = [];
    const sides = [sideOf(turns, 'x', 1, { measures: (shape) => shape === 2 })];
    await takeTurns({ ...quiet, rounds: 1, sides }, ComparisonRecord.start(file(), CONDITIONS));
    expect(turns).toEqual(['skein x 2']);
  });
});

describe('ComparisonRecord', () => {
  const measurement = { round: 1, side: 's', column: 'a', values: { rate: 1 }, seconds: 3, at: '' };

  it('refuses to go on under other conditions', () => {
    const path = file();
    ComparisonRecord.start(path, CONDITIONS).add(measurement);
    const other = { ...CONDITIONS, settings: { threads: 4 } };
    expect(() => ComparisonRecord.resume(path, other)).toThrow('another settings: expected {"threads":4}');
    const machine = { ...CONDITIONS.machine, features: [] };
    expect(() => ComparisonRecord.resume(path, { ...CONDITIONS, machine })).toThrow('another machine');
    expect(ComparisonRecord.resume(path, CONDITIONS).has(1, 's', 'a')).toBe(true);
  });

  it('starts anew beside the file that is there', () => {
    const path = file();
    ComparisonRecord.start(path, CONDITIONS).add(measurement);
    const fresh = ComparisonRecord.start(path, CONDITIONS);
    expect(fresh.has(1, 's', 'a')).toBe(false);
    expect(existsSync(path)).toBe(false);
    expect(ComparisonRecord.read(`${path}.old`).has(1, 's', 'a')).toBe(true);
  });

  it('has nothing to report where nothing was measured', () => {
    const path = file();
    expect(() => ComparisonRecord.read(path)).toThrow(`${path}: expected the measurements of an earlier run`);
  });
});
