import { join } from 'node:path';
import { expect, it } from 'vitest';
import { agentsReport } from '../../../tools/compare/agents-report.js';
import { ComparisonRecord } from '../../../tools/compare/record.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const MACHINE = { cpu: 'CPU', cores: 2, memoryGiB: 8, features: ['avx512f'] };
const VALUES = {
  ...{ readMs: 61_240, laterP50: 812.4, laterP99: 1500, cachedShare: 0.9876, computedTokens: 311.2 },
  ...{ tokensPerSecond: 42.25, turnP50: 1912.4, fairness: 0.9 },
};

it('has a row of each server, with nothing where one says nothing', () => {
  const settings = { model: 'm', threads: 2, agents: 16, turns: 4, functions: 129, history: 20_000 };
  const file = join(temporaryFolder('skein-agents-report'), 'record.json');
  const record = ComparisonRecord.start(file, {
    machine: MACHINE,
    settings: { ...settings, result: 300, generate: 48 },
  });
  const add = (name: string, values: Record<string, number>) => {
    record.enter({ name, engine: name, format: 'Q8_0', bytes: 1, version: '1' });
    record.add({ round: 1, side: name, column: 'agents', values, seconds: 1, at: '' });
  };
  add('skein', VALUES);
  const { cachedShare: _share, computedTokens: _tokens, ...told } = VALUES;
  add('other', told);
  const report = agentsReport(record);
  expect(report).toContain('16 agents at once, each with 129 functions');
  expect(report).toContain('| skein | 61.2 | 812 | 1500 | 1912 | 98.8 | 311 | 42.3 | 0.90 |');
  expect(report).toContain('| other | 61.2 | 812 | 1500 | 1912 |  |  | 42.3 | 0.90 |');
});
