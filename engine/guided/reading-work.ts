import { GuideError } from './guide-error.js';

/** Most steps that reading a guide may take: schemas visited, parts of an expression, ranges of characters. */
export const MAX_READING_WORK = 8_000_000;

/** Reading a guide takes more steps than the limit. */
export class ReadingWorkError extends GuideError {
  override name = 'ReadingWorkError';
  override readonly code = 'SKEIN_GUIDE_READING_WORK';

  constructor(limit: number) {
    super(`The guide is too much work to read: it takes more than ${limit} steps.`);
  }
}

let spent = 0;
let limit = Number.POSITIVE_INFINITY;

/**
 * Counts steps of reading a guide. They depend only on the guide, so the same one is read, or refused, on any machine at any
 * load. @throws ReadingWorkError beyond the limit
 */
export function spend(steps: number): void {
  spent += steps;
  if (spent > limit) throw new ReadingWorkError(limit);
}

/** Reads a guide within `steps` steps. Reading is synchronous, so the count is always that of one guide. */
export function withinReadingWork<T>(steps: number, read: () => T): T {
  spent = 0;
  limit = steps;
  try {
    return read();
  } finally {
    limit = Number.POSITIVE_INFINITY;
  }
}

/** Number of steps spent on the guide that was read last. */
export function readingWork(): number {
  return spent;
}
