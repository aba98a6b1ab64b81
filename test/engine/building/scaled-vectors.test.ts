import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { scaleVectors } from '../../../engine/building/scaled-vectors.js';
import type { NetworkPlan } from '../../../network/plan.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-scaled');

/** weights.bin of a vector of two sources, the second with a factor, after 8 bytes of something else. */
function scaled(bytes: Buffer, factor: number): Buffer {
  const file = join(folder, 'weights.bin');
  writeFileSync(file, bytes);
  const sources = [
    { name: 'a', rows: 1, columns: 1 },
    { name: 'b', rows: 1, columns: 2, factor },
  ];
  const weights = [{ name: 'v', kind: 'vector', rows: 1, columns: 3, sources }];
  const tensor = { name: 'v', dtype: 'f32', rows: 1, columns: 3, offset: 8, byteLength: 12 } as const;
  const fd = openSync(file, 'r+');
  try {
    scaleVectors(fd, { weights } as unknown as NetworkPlan, [tensor]);
  } finally {
    closeSync(fd);
  }
  return readFileSync(file);
}

it('multiplies the part of a vector that has a factor, rounded to float32, and nothing else', () => {
  const before = Buffer.from(Float32Array.of(7, 8, 3, 0.1, -5).buffer);
  const after = scaled(before, 0.3);
  const factor = Math.fround(0.3);
  expect([...new Float32Array(new Uint8Array(after).buffer)]).toEqual([
    7,
    8,
    3,
    Math.fround(Math.fround(0.1) * factor),
    Math.fround(-5 * factor),
  ]);
});

it('says so where the file is too short', () => {
  expect(() => scaled(Buffer.alloc(16), 2)).toThrow(/weights\.bin ends before byte 20\./);
});
