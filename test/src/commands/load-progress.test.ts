import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { showLoadProgress } from '../../../src/commands/load-progress.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const outputOf = (isTTY: boolean) => {
  const written: string[] = [];
  return { isTTY, written, write: (text: string) => written.push(text) };
};

describe('what is shown while models are loaded', () => {
  it('is nothing where it is done at once', () => {
    for (const isTTY of [true, false]) {
      const output = outputOf(isTTY);
      const progress = showLoadProgress(output, ['m']);
      vi.advanceTimersByTime(300);
      progress.end();
      vi.advanceTimersByTime(10_000);
      expect(output.written).toEqual([]);
    }
  });

  it('is a bar that moves on a terminal, and goes at the end', () => {
    const output = outputOf(true);
    const progress = showLoadProgress(output, ['a', 'b']);
    vi.advanceTimersByTime(5_000);
    expect(output.written.length).toBeGreaterThan(30);
    expect(output.written[0]).toBe(
      `\rskein: loading a, b ${'░'.repeat(4)}${'█'.repeat(8)}${'░'.repeat(18)} 0 s\x1b[K`,
    );
    const bars = output.written.map((text) => Array.from(text.matchAll(/[░█]/g)).length);
    expect(new Set(bars)).toEqual(new Set([30]));
    expect(output.written.at(-1)).toContain(' 5 s');
    progress.end();
    expect(output.written.at(-1)).toBe('\r\x1b[K');
  });

  it('is one line elsewhere', () => {
    const output = outputOf(false);
    const progress = showLoadProgress(output, ['m']);
    vi.advanceTimersByTime(60_000);
    progress.end();
    expect(output.written).toEqual(['skein: loading m\n']);
  });

  it('leaves the line to a download or a build, and comes back behind it', () => {
    const output = outputOf(true);
    const progress = showLoadProgress(output, ['m']);
    vi.advanceTimersByTime(500);
    progress.busy();
    expect(output.written.at(-1)).toBe('\r\x1b[K');
    const { length } = output.written;
    vi.advanceTimersByTime(300);
    expect(output.written).toHaveLength(length);
    vi.advanceTimersByTime(300);
    expect(output.written.at(-1)).toContain('loading m');
    progress.end();
  });
});
