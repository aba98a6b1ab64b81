/** Default priority of a cached block. */
export const DEFAULT_RETENTION_PRIORITY = 35;

export interface RetentionPriority {
  /** 0 to 100: the lower, the sooner evicted. */
  priority: number;
  /** Milliseconds after which the default holds again; absent: never. */
  durationMs?: number;
}

/** Priorities by which a sequence's blocks are kept. A block has the priority of its first token. */
export interface Retention {
  /** Token ranges [start, end); the first that holds a block's first token counts. No end: up to the prompt's end. */
  ranges?: readonly (RetentionPriority & { start: number; end?: number })[];
  /** Priority of blocks that begin with a generated token. */
  generated?: RetentionPriority;
}

/** @throws RangeError naming the value that is out of its limits */
export function checkRetention({ ranges = [], generated }: Retention): void {
  for (const { start, end } of ranges) {
    if (!(Number.isInteger(start) && start >= 0 && (end === undefined || end > start))) {
      throw new RangeError(
        `A retention range is [${start}, ${end}); a start of at least 0 below its end is expected.`,
      );
    }
  }
  for (const { priority, durationMs } of generated ? [...ranges, generated] : ranges) {
    if (!(Number.isInteger(priority) && priority >= 0 && priority <= 100)) {
      throw new RangeError(`A retention priority is ${priority}; a whole number from 0 to 100 is expected.`);
    }
    if (durationMs !== undefined && !(durationMs > 0)) {
      throw new RangeError(`A retention duration is ${durationMs} ms; a number above 0 is expected.`);
    }
  }
}

/** Priority asked for the block that begins at `position`; null if none was. */
export function retentionAt(
  { ranges = [], generated }: Retention,
  position: number,
  promptLength: number,
): RetentionPriority | null {
  if (position >= promptLength) return generated ?? null;
  const found = ranges.find(({ start, end }) => position >= start && (end === undefined || position < end));
  return found ?? null;
}
