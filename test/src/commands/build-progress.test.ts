import { describe, expect, it } from 'vitest';
import type { BuildProgress } from '../../../engine/building/builder.js';
import { showBuildProgress } from '../../../src/commands/build-progress.js';

const PHASES: readonly BuildProgress[] = [
  { phase: 'reading', done: 0, total: 0 },
  { phase: 'converting', done: 0, total: 200e6 },
  { phase: 'converting', done: 90e6, total: 200e6 },
  { phase: 'summing', done: 0, total: 600e6 },
  { phase: 'summing', done: 10e6, total: 600e6 },
  { phase: 'summing', done: 310e6, total: 600e6 },
  { phase: 'finishing', done: 800e6, total: 800e6 },
];

function shown(isTTY: boolean): string[] {
  const written: string[] = [];
  const show = showBuildProgress({ isTTY, write: (text) => written.push(text) });
  for (const progress of PHASES) show(progress);
  return written;
}

describe('the progress of a build', () => {
  it('is a few plain lines, each once', () => {
    expect(shown(false)).toEqual([
      'skein: reading the model\n',
      'skein: converting weights: 0 % of 200 MB\n',
      'skein: converting weights: 25 % of 200 MB\n',
      'skein: reading weights: 0 % of 600 MB\n',
      'skein: reading weights: 50 % of 600 MB\n',
      'skein: writing the engine\n',
    ]);
  });

  it('is one moving line on a terminal', () => {
    const lines = shown(true);
    expect(lines).toHaveLength(PHASES.length);
    const half = '█'.repeat(15) + '░'.repeat(15);
    expect(lines[5]).toBe(`\rskein: reading weights ${half} 51 % of 600 MB\x1b[K`);
    expect(lines.at(-1)).toBe('\rskein: writing the engine\x1b[K\n');
    expect(lines.slice(0, -1).some((line) => line.includes('\n'))).toBe(false);
  });
});
