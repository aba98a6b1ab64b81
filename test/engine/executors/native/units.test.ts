import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const native = join(import.meta.dirname, '../../../../engine/executors/native');
/** Files that are compiled alone: those of one instruction set each, and the vectors in plain C++. */
const ALONE = /^kernels\/(amx|avx|neon|scalar|emulated)/;

it('each file of the addon is in one of the units that are compiled', () => {
  const files = readdirSync(native, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.cpp') && !name.startsWith('units/') && !ALONE.test(name));
  const included = readdirSync(join(native, 'units')).flatMap((unit) =>
    [...readFileSync(join(native, 'units', unit), 'utf8').matchAll(/^#include "(.*)"$/gm)].map(
      ([, name]) => name,
    ),
  );
  expect(included.sort()).toEqual(files.sort());
});
