import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { comparisonReport, rateColumns } from '../../../tools/compare/comparison-report.js';
import { httpReport, httpSummary } from '../../../tools/compare/http-report.js';
import { ComparisonRecord } from '../../../tools/compare/record.js';
import type { SideInfo } from '../../../tools/compare/side.js';
import { mediansTable, opponentsOf, ratio, ratiosTable, spreadLine } from '../../../tools/compare/tables.js';
import { freshFolders } from '../../support/fresh-folders.js';

const freshFolder = freshFolders('tables');
const side = (engine: string, format: string, megabytes: number): SideInfo => ({
  name: `${engine} ${format}`,
  engine,
  format,
  bytes: megabytes * 1e6,
  version: '1',
});
const LLAMA = [
  side('llama.cpp', 'BF16', 271),
  side('llama.cpp', 'Q8_0', 145),
  side('llama.cpp', 'Q4_1', 98),
  side('llama.cpp', 'Q4_0', 92),
];
const OPENVINO = [side('openvino', 'fp16', 269), side('openvino', 'int8', 135)];
const INT8 = side('skein', 'int8', 143);
const INT4 = side('skein', 'int4', 99);

/** Rounds of one column, by side. */
function recordOf(rates: Record<string, number[]>, key = 'rate', settings = {}): ComparisonRecord {
  const machine = { cpu: 'c', cores: 2, memoryGiB: 8, features: ['avx2', 'fma'] };
  const record = ComparisonRecord.start(join(freshFolder(), 'x.json'), { machine, settings });
  for (const info of [INT4, INT8, ...LLAMA, ...OPENVINO].filter(({ name }) => rates[name])) {
    record.enter(info);
    for (const [i, value] of rates[info.name]!.entries())
      record.add({
        round: i + 1,
        side: info.name,
        column: 'a',
        values: { [key]: value },
        seconds: 1,
        at: '',
      });
  }
  return record;
}

const COLUMN = { title: 'rates', column: 'a', key: 'rate' };

describe('opponentsOf', () => {
  const names = (ours: SideInfo) =>
    opponentsOf(ours, [...LLAMA, ...OPENVINO, INT8, INT4]).map(({ label, sides }) => [
      label,
      sides.map(({ format }) => format).join(),
    ]);

  it('pairs a format with the same one, with no smaller files and with all; OpenVINO only with all', () => {
    expect(names(INT8)).toEqual([
      ['llama.cpp Q8_0', 'Q8_0'],
      ['llama.cpp, its best of no smaller weights', 'BF16,Q8_0'],
      ['llama.cpp, its best', 'BF16,Q8_0,Q4_1,Q4_0'],
      ['openvino, its best', 'fp16,int8'],
    ]);
  });

  it('pairs a format with another instruction set as without', () => {
    expect(names(side('skein', 'int8@avx512bf16', 143))).toEqual(names(INT8));
  });

  it('takes a file as no smaller that differs by less than its vocabulary', () => {
    expect(names(INT4)[1]).toEqual(['llama.cpp, its best of no smaller weights', 'BF16,Q8_0,Q4_1']);
  });

  it('says nothing twice', () => {
    const only = [LLAMA[1]!, INT8];
    expect(opponentsOf(INT8, only).map(({ label }) => label)).toEqual(['llama.cpp Q8_0']);
    const larger = [LLAMA[0]!, LLAMA[1]!, INT8];
    expect(opponentsOf(INT8, larger).map(({ label }) => label)).toEqual([
      'llama.cpp Q8_0',
      'llama.cpp, its best',
    ]);
  });
});

describe('ratio', () => {
  const record = recordOf({
    'skein int8': [300, 100, 200],
    'llama.cpp Q8_0': [100, 100, 500],
    'llama.cpp Q4_1': [160, 150, 170],
  });

  it('is of the median and the best median; for latencies the other way round', () => {
    expect(ratio(record, INT8, LLAMA, COLUMN)).toBe(200 / 160);
    expect(ratio(record, INT8, LLAMA, { ...COLUMN, isLatency: true })).toBe(100 / 200);
  });

  it('is none where a side was not measured', () => {
    expect(ratio(record, INT8, OPENVINO, COLUMN)).toBeNaN();
    expect(ratio(record, INT4, LLAMA, COLUMN)).toBeNaN();
  });
});

describe('tables', () => {
  const record = recordOf({
    'skein int8': [300, 100, 200],
    'llama.cpp Q8_0': [100, 100],
    'llama.cpp Q4_1': [160, 150, 170],
  });

  it('have the medians, peers first, the files and the rounds', () => {
    expect(mediansTable(record, [COLUMN]).split('\n')).toEqual([
      '| engine, weights | MB | rates |',
      '| --- | ---: | ---: |',
      '| llama.cpp Q8_0 | 145 | 100 |',
      '| llama.cpp Q4_1 | 98 | 160 |',
      '| skein int8 | 143 | 200 |',
      '| rounds |  | 2 to 3 |',
    ]);
  });

  it('have the ratios, and nothing where there is none', () => {
    const missing = { ...COLUMN, title: 'missing', column: 'b' };
    expect(ratiosTable(record, [COLUMN, missing]).split('\n').slice(2)).toEqual([
      '| skein int8 / llama.cpp Q8_0 | 2.00x |  |',
      '| skein int8 / llama.cpp, its best | 1.25x |  |',
    ]);
  });

  it('say how far rounds lie apart', () => {
    // 200 / 200, 0 / 100 and 20 / 160.
    expect(spreadLine(record, [COLUMN])).toContain('13 % apart in the middle, 100 % in the worst');
    expect(spreadLine(recordOf({ 'skein int8': [1] }), [COLUMN])).toContain('One round');
  });
});

describe('rateColumns', () => {
  it('has generation by prompt and sequences, then prefill of single sequences', () => {
    const titles = rateColumns(['64x2048+16', '1x1024+64', '8x128+64', '1x128+128']).map(
      ({ title }) => title,
    );
    expect(titles).toEqual([
      'generation 1 x 128',
      'generation 8 x 128',
      'generation 1 x 1024',
      'generation 64 x 2048',
      'prefill 128',
      'prefill 1024',
    ]);
  });
});

describe('reports', () => {
  it('of rates have medians, ratios and the share of JavaScript', () => {
    const record = recordOf({}, '', { model: 'm.gguf', threads: 2 });
    for (const info of [INT8, LLAMA[1]!]) record.enter(info);
    const measurement = { round: 1, column: '1x128+8', seconds: 1, at: '' };
    const values = { generationPerSecond: 30, prefillPerSecond: 90 };
    record.add({ ...measurement, side: INT8.name, values: { ...values, javascriptShare: 0.0123 } });
    record.add({ ...measurement, side: 'llama.cpp Q8_0', values: { ...values, generationPerSecond: 20 } });
    const report = comparisonReport(record);
    expect(report).toContain('c, 2 cores, 8 GiB, avx2 fma; m.gguf; 2 threads each; llama.cpp 1.');
    expect(report).toContain('| skein int8 | 143 | 30 | 90 |');
    expect(report).toContain('| skein int8 / llama.cpp Q8_0 | 1.50x | 1.00x |');
    expect(report).toContain('| skein int8 | 1.2 % |');
  });

  it('of servers turn the ratios of latencies round', () => {
    const record = recordOf({}, '', {
      model: 'm',
      threads: 2,
      words: 9,
      generate: 8,
      requests: 2,
      connections: 'kept',
    });
    const theirs = side('llama-server', 'Q8_0', 145);
    for (const info of [INT8, theirs]) record.enter(info);
    for (const [name, factor] of [
      [INT8.name, 1],
      [theirs.name, 2],
    ] as const) {
      const values = {
        tokensPerSecond: 100 / factor,
        firstTokenP50: 5 * factor,
        firstTokenP99: 10 * factor,
        failed: factor - 1,
      };
      for (const column of ['c8', 'c1'])
        record.add({ round: 1, side: name, column, values, seconds: 1, at: '' });
    }
    const report = httpReport(record);
    expect(report).toContain('| engine, weights | MB | 1 client | 8 clients |');
    expect(report.match(/skein int8 \/ llama-server Q8_0 \| 2.00x \| 2.00x/g)).toHaveLength(3);
    expect(report.split('Failed requests')[2]).toContain('| llama-server Q8_0 | 145 | 1 | 1 |');
    expect(httpSummary(record).split('\n')).toEqual([
      'c, 2 cores, 8 GiB, avx2 fma; m; 2 threads each; llama-server 1. Medians of 1 round.',
      '',
      '|  | 1 client | 8 clients |',
      '| --- | ---: | ---: |',
      '| llama-server Q8_0, tokens/s | 50 | 50 |',
      '| skein int8, tokens/s | 100 | 100 |',
      '| skein int8 / llama-server Q8_0: tokens/s | 2.00x | 2.00x |',
      '| skein int8 / llama-server Q8_0: first token | 2.00x | 2.00x |',
    ]);
  });
});
