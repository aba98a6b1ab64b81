import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A seed for the day: 20260131 for the 31st of January 2026, in the time zone of Greenwich. */
export function seedOf(date: Date): number {
  return Number(date.toISOString().slice(0, 10).replaceAll('-', ''));
}

/** The test files below a folder that draw inputs. */
export function propertyTestsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join(folder, path))
    .filter((path) => /from 'fast-check'|\bdraws\(/.test(readFileSync(path, 'utf8')))
    .toSorted();
}
