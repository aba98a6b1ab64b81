import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkMemory, ShapeFile } from '../../../../tools/compare/shape/shape-file.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const freshFolder = freshFolders('shape-file');

describe('ShapeFile', () => {
  it('has a name by which the peers know that the file is of its type, in a folder of this process', () => {
    const folder = freshFolder();
    const model = new ShapeFile({ shape: 'llama-8b', type: 'Q4_0', folder });
    expect(model.path).toBe(join(folder, `skein-shape-${process.pid}`, 'llama-8b.Q4_0.gguf'));
    model.remove();
    expect(existsSync(join(folder, `skein-shape-${process.pid}`))).toBe(false);
  });
});

describe('checkMemory', () => {
  it('says what a model takes and what there is', () => {
    expect(() => checkMemory('a model', 18e9, 20e9)).not.toThrow();
    expect(() => checkMemory('a model', 18.55e9, 16e9)).toThrow(
      'a model takes 18.6 GB of memory, and this machine has 16.0 GB in all.',
    );
  });
});
