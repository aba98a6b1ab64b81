import { readFileSync } from 'node:fs';

/** Reads a small text file of the system; null where it cannot be read. Tests pass their own. */
export type ReadText = (path: string) => string | null;

export const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
};
