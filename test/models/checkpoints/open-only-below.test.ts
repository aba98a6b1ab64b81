import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { readText } from '../../../models/checkpoints/file-reading.js';
import { isBelow, OutsideError, openOnlyBelow } from '../../../models/checkpoints/open-only-below.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-only-below');
const inside = join(folder, 'inside');
mkdirSync(join(inside, 'deep'), { recursive: true });
writeFileSync(join(inside, 'deep/own.json'), 'own');
writeFileSync(join(folder, 'secret.json'), 'secret');
symlinkSync(join(folder, 'secret.json'), join(inside, 'link.json'));
symlinkSync(folder, join(inside, 'up'));
symlinkSync('deep/own.json', join(inside, 'near.json'));

afterEach(() => openOnlyBelow(null));

describe('files of a thread that reads below a folder alone', () => {
  it('are those that lie there, by whatever name they are opened', () => {
    openOnlyBelow(inside);
    for (const name of ['deep/own.json', 'near.json', 'up/inside/deep/own.json']) {
      expect(readText(join(inside, name), 100)).toBe('own');
    }
    for (const name of ['link.json', 'up/secret.json', '../secret.json']) {
      expect(() => readText(join(inside, name), 100)).toThrow(OutsideError);
    }
    expect(readText(join(inside, 'nothing.json'), 100)).toBeNull();
  });

  it('are any where no folder was named', () => {
    expect(readText(join(inside, 'link.json'), 100)).toBe('secret');
  });

  it('are no pipes', () => {
    const pipe = join(inside, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(() => readText(pipe, 100)).toThrow(CheckpointError);
  });

  it.each([
    ['/a', '/a/b', true],
    ['/a', '/a', false],
    ['/a', '/ab', false],
    ['/a', '/a/../b', false],
    ['/a', '/a/..b', true],
  ])('lie below %s as %s: %s', (root, path, expected) => {
    expect(isBelow(root, path)).toBe(expected);
  });
});
