import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newMemoryName, removeStaleMemory } from '../../../host/ranks/group-memory.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-stale');

it('memory of a killed process is removed, and no other', async () => {
  const killed = spawn('sleep', ['60']);
  await once(killed, 'spawn');
  const own = newMemoryName();
  const of = (pid: number) => own.replace(`-${process.pid}-`, `-${pid}-`);
  const elsewhere = of(killed.pid!).replace(/ranks-\d+-/, 'ranks-1-');
  const living = of(1);
  const stale = of(killed.pid!);
  const others = [own, living, elsewhere, `${stale}.txt`, 'skein-ranks-x'].sort();
  for (const name of [...others, stale]) writeFileSync(join(folder, name), '');
  removeStaleMemory(folder);
  expect(readdirSync(folder).sort()).toEqual([...others, stale].sort());
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  removeStaleMemory(folder);
  expect(readdirSync(folder).sort()).toEqual(others);
});

it('a folder that is not there is no error', () => {
  expect(() => removeStaleMemory(join(folder, 'none'))).not.toThrow();
});
