import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ComparisonRecord } from '../../../../tools/compare/record.js';
import { shapeReport, shapesReport } from '../../../../tools/compare/shape/shape-report.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const freshFolder = freshFolders('shape-report');
const MACHINE = { cpu: 'c', cores: 2, memoryGiB: 8, features: ['avx2'] };
const STARTS = {
  readSeconds: 1,
  firstStartSeconds: 3,
  laterStartSeconds: 0.5,
  residentMb: 900,
  ownMb: 100,
  keptMb: 1600,
};

function recordOf(
  columns: readonly string[],
  { model = 'llama-1b.Q4_K_M', file = join(freshFolder(), 'x.json'), machine = MACHINE } = {},
): ComparisonRecord {
  const record = ComparisonRecord.start(file, { machine, settings: { model, threads: 2, runs: 2 } });
  for (const [engine, rate] of [
    ['llama.cpp', 10],
    ['ik_llama.cpp', 16],
    ['skein', 20],
  ] as const) {
    const name = `${engine} Q4_K_M`;
    record.enter({ name, engine, format: 'Q4_K_M', bytes: 800e6, version: '1' });
    for (const column of columns) {
      const values =
        column === 'starts' ? STARTS : { generationPerSecond: rate, prefillPerSecond: 10 * rate };
      record.add({ round: 1, side: name, column, values, seconds: 1, at: '' });
    }
  }
  return record;
}

describe('shapeReport', () => {
  it('has rates with their ratios beside each engine, then starts', () => {
    const lines = shapeReport(recordOf(['1x128+32', 'starts'])).split('\n');
    expect(lines).toContain('| skein Q4_K_M | 800 | 20 | 200 |');
    expect(lines).toContain('| skein Q4_K_M / llama.cpp, its best | 2.00x | 2.00x |');
    expect(lines).toContain('| skein Q4_K_M / ik_llama.cpp, its best | 1.25x | 1.25x |');
    expect(lines).toContain('| skein Q4_K_M | 800 | 1.0 | 3.0 | 0.5 | 900.0 | 100.0 | 1600.0 |');
  });

  it('has one of the two where only that was measured', () => {
    expect(shapeReport(recordOf(['1x128+32']))).not.toContain('first start');
    expect(shapeReport(recordOf(['starts']))).not.toContain('generation');
  });
});

describe('shapesReport', () => {
  it('has the records of the same machine beside it, the smallest model first', () => {
    const folder = freshFolder();
    const write = (model: string, machine = MACHINE) =>
      recordOf(['1x128+32'], { model, machine, file: join(folder, `shape-${model}-${machine.cpu}.json`) });
    write('llama-1b.Q4_K_M');
    write('qwen3-4b.Q4_K_M', { ...MACHINE, cpu: 'another' });
    const record = write('llama-8b.Q4_K_M');
    write('llama-3b.Q4_0');
    const models = Array.from(shapesReport(folder, record).matchAll(/avx2; ([^;]+);/g), (match) => match[1]);
    expect(models).toEqual(['llama-1b.Q4_K_M', 'llama-3b.Q4_0', 'llama-8b.Q4_K_M']);
    expect(shapesReport(join(folder, 'nowhere'), record)).toBe(shapeReport(record));
  });
});
