import { GuideError } from './guide-error.js';

/** Most steps that reading a guide may take: schemas looked at, parts of an expression, ranges of characters. */
export const MAX_READING_WORK = 8_000_000;

/** Reading a guide takes more steps than it may. */
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
 * Counts steps of reading a guide. They depend on nothing but the guide, so the same one is read, or refused, on any machine
 * at any load. @throws ReadingWorkError beyond the limit.
 */
export function spend(steps: number): void {
  spent += steps;
  if (spent > limit) throw new ReadingWorkError(limit);
}

/** Reads a guide within so many steps. Reading is synchronous, so what is counted is one guide's. */
export function withinReadingWork<T>(steps: number, read: () => T): T {
  spent = 0;
  limit = steps;
  try {
    return read();
  } finally {
    limit = Number.POSITIVE_INFINITY;
  }
}

/** Steps that were spent on the guide which was read last. */
export function readingWork(): number {
  return spent;
}
