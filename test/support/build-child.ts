// Run by the builder's tests in a process of its own: builds into a cache or a directory and says how it went.
//   node --import tsx build-child.ts cache|directory MODEL TARGET [hold|unprivileged]
// With `hold` it says "converting" when the conversion begins, and stops there until its standard input has a byte.
// With `unprivileged` it gives up being root first, whom no file permission holds back.
import { readSync, writeSync } from 'node:fs';
import { buildEngine } from '../../engine/building/builder.js';
import { cachedEngine } from '../../engine/building/engine-cache.js';

const [kind, model, target, mode] = process.argv.slice(2) as [string, string, string, string?];
const phases: string[] = [];

function onProgress({ phase }: { phase: string }): void {
  if (phases.at(-1) === phase) return;
  phases.push(phase);
  writeSync(1, `${phase}\n`);
  if (mode === 'hold' && phase === 'converting') readSync(0, Buffer.alloc(1));
}

if (mode === 'unprivileged' && process.getuid?.() === 0) process.seteuid?.(65_534);
try {
  const common = { model, precision: 'f32', onProgress, threads: 1 };
  const engine =
    kind === 'cache'
      ? await cachedEngine({ ...common, cacheDirectory: target })
      : await buildEngine({ ...common, outputDirectory: target });
  writeSync(1, `done ${engine.directory}\n`);
} catch (error) {
  writeSync(2, `${(error as Error).name}: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
