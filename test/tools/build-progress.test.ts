import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';

const script = fileURLToPath(new URL('../../tools/build-addon/progress.mjs', import.meta.url));
const { progressOf, tellProgress } = (await import(script)) as {
  progressOf(folder: string): { done: number; total: number };
  tellProgress(folder: string, say: (line: string) => void, everyMs?: number): () => void;
};

it('counts the files that are compiled, and says so until it ends', () => {
  const folder = temporaryFolder('skein-progress');
  const put = (path: string, ...lines: string[]) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), lines.join('\n'));
  };
  const object = (path: string) => `\t$(obj).target/$(TARGET)/engine/${path}.o \\`;
  expect(progressOf(folder)).toEqual({ done: 0, total: 0 });
  put(
    'build/skein.target.mk',
    'OBJS := \\',
    object('units/checks'),
    object('units/forward'),
    '',
    'all_deps += $(OBJS)',
  );
  put('build/skein_avx2.target.mk', 'OBJS := \\', object('kernels/avx2'));
  put('build/Makefile');
  put('build/Release/obj.target/skein/engine/units/checks.o');
  put('build/Release/.deps/checks.o.d');
  expect(progressOf(folder)).toEqual({ done: 1, total: 3 });
  vi.useFakeTimers();
  try {
    const lines: string[] = [];
    const end = tellProgress(folder, (line) => lines.push(line), 10_000);
    vi.advanceTimersByTime(20_000);
    expect(lines.map((line) => line.replace(/ in .*/, ''))).toEqual(Array(2).fill('compiled 1 of 3 files'));
    end();
    vi.advanceTimersByTime(20_000);
    expect(lines).toHaveLength(2);
  } finally {
    vi.useRealTimers();
  }
});
