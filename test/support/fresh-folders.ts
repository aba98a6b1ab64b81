import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** Makes an empty folder with each call; all of them are removed after the tests of the file. */
export function freshFolders(prefix: string): () => string {
  const root = mkdtempSync(join(tmpdir(), `${prefix}-`));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  let count = 0;
  return () => {
    const directory = join(root, `model-${count++}`);
    mkdirSync(directory);
    return directory;
  };
}
