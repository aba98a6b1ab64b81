import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * An empty folder with a name of its own. It is removed after the tests of the file or `describe` that calls
 * this, and after all `afterAll` that are registered later: Vitest runs them in reverse order.
 */
export function temporaryFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${prefix}-`));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Makes an empty folder with each call; all of them are removed after the tests of the file. */
export function freshFolders(prefix: string): () => string {
  const root = temporaryFolder(prefix);
  let count = 0;
  return () => {
    const directory = join(root, `model-${count++}`);
    mkdirSync(directory);
    return directory;
  };
}
