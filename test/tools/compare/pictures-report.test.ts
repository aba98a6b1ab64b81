import { join } from 'node:path';
import { expect, it } from 'vitest';
import { picturesReport } from '../../../tools/compare/pictures-report.js';
import { ComparisonRecord } from '../../../tools/compare/record.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const MACHINE = { cpu: 'CPU', cores: 2, memoryGiB: 8, features: ['avx512f'] };
const VALUES = {
  users: { picturesPerSecond: 0.25 },
  second: { first: 4, second: 0.125 },
  plain: { tokens: 24 },
  texts: { alone: 20, beside: 15, lostPercent: 25, gapAlone: 100, gapBeside: 150 },
};

it('has a row of each server, and the ratios to the best of the others', () => {
  const settings = { model: 'm', threads: 2, users: 8, side: 448, texts: 4, pictures: 4 };
  const file = join(temporaryFolder('skein-pictures-report'), 'record.json');
  const record = ComparisonRecord.start(file, { machine: MACHINE, settings });
  const add = (engine: string, format: string, share: number, columns: readonly (keyof typeof VALUES)[]) => {
    const name = `${engine} ${format}`;
    record.enter({ name, engine, format, bytes: 1, version: '1' });
    for (const column of columns) {
      const values = Object.fromEntries(
        Object.entries(VALUES[column]).map(([key, value]) => [key, value * share]),
      );
      record.add({ round: 1, side: name, column, values, seconds: 1, at: '' });
    }
  };
  add('skein', 'BF16', 1, ['users', 'second', 'texts', 'plain']);
  add('skein', 'no tower', 0.8, ['plain']);
  add('llama-server', 'BF16', 0.25, ['users', 'second', 'texts']);
  add('llama-server', 'Q8_0', 0.5, ['users']);
  const report = picturesReport(record);
  expect(report).toContain('| skein BF16 | 0.25 | 4.00 | 0.125 | 20.0 | 15.0 | 25 | 100 | 150 | 24.0 |');
  expect(report).toContain('1.250 times the tokens of the same model without a tower');
  expect(report).toContain('| llama-server Q8_0 | 0.13 |  |');
  expect(report).toMatch(/8 pictures: 0\.25 pictures\/s, 2\.00 times llama-server's best;/);
  expect(report).toContain('32 times as early as the first, 32 times with llama-server BF16;');
  expect(report).toContain('6 % and 38 ms of llama-server BF16;');
});
