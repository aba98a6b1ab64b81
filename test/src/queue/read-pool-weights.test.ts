import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readPoolWeights } from '../../../src/queue/read-pool-weights.js';

it('weights of engines come from a list, or from the lines of a file', () => {
  expect([...readPoolWeights('fp_a=95, fp_b=0.5')]).toEqual([
    ['fp_a', 95],
    ['fp_b', 0.5],
  ]);
  expect(readPoolWeights(undefined).size).toBe(0);
  const folder = mkdtempSync(join(tmpdir(), 'skein-weights-'));
  const file = join(folder, 'weights');
  writeFileSync(file, '# the old one\nfp_a = 19\n\nfp_b=1 # the new one\n');
  expect([...readPoolWeights(`@${file}`)]).toEqual([
    ['fp_a', 19],
    ['fp_b', 1],
  ]);
  rmSync(folder, { recursive: true });
  expect(() => readPoolWeights(`@${file}`)).toThrow(/^--pool-weights: .* cannot be read/);
});

it.each([
  ['fp_a', /has "fp_a"; it must be weights/],
  ['fp_a=-1', /has "fp_a=-1"/],
  ['fp_a=2000000', /from 0 to 1000000/],
  ['fp_a=1,fp_a=2', /names fp_a twice/],
  ['fp_a=0', /^--pool-weights has no weight above 0, so that no engine would get a new request/],
  ['fp_a=0,fp_b=0.0', /has no weight above 0/],
  [Array.from({ length: 513 }, (_, i) => `fp_${i}=1`).join(), /names 513 engines; there may be 512 at most/],
])('weights that are wrong are refused: %s', (text, why) => {
  expect(() => readPoolWeights(text)).toThrow(why);
});
