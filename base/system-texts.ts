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

/** Parses a list as the kernel writes it, such as `0-3,8`. */
export function parseCpuList(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, first, last] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? [];
    if (first === undefined) return [];
    const end = Number(last ?? first);
    return Array.from({ length: end - Number(first) + 1 }, (_, i) => Number(first) + i);
  });
}

export function formatCpuList(cpus: readonly number[]): string {
  return cpus.toSorted((a, b) => a - b).join(',');
}
