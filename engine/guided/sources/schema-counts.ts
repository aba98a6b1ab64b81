import { MAX_REPETITION } from './regex-reader.js';
import { fault, type SchemaFaults } from './schema-faults.js';
import type { JsonValue } from './schema-keywords.js';

/** Longest text whose length is counted; no answer is longer. */
const MAX_LENGTH = 10_000_000;

/**
 * Least and greatest number of characters, items or properties; null: no bound. What is too large to be counted goes to the
 * faults, and is then no bound.
 */
export function counts(
  what: 'Length' | 'Items' | 'Properties',
  min: JsonValue | undefined,
  max: JsonValue | undefined,
  path: string,
  faults: SchemaFaults,
): [number, number | null] {
  const counted = (keyword: string, count: JsonValue | undefined): number | null => {
    const limit = what === 'Length' ? MAX_LENGTH : MAX_REPETITION;
    if (count === undefined || (count as number) <= limit) return (count as number | undefined) ?? null;
    const isBeyondAnswers = what === 'Length' && keyword === 'max';
    if (!isBeyondAnswers)
      faults.unsupported(path, `${keyword}${what} is ${count}; at most ${limit} is supported`);
    return null;
  };
  const [least, most] = [counted('min', min) ?? 0, counted('max', max)];
  if (most !== null && most < least)
    throw fault(path, `max${what} is ${most}, less than min${what}, ${least}`);
  return [least, most];
}
