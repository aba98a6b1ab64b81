import type { ComparisonRecord } from './record.js';
import type { Named, Side } from './side.js';

export interface Turns<S> {
  sides: readonly Side<S>[];
  columns: readonly Named<S>[];
  rounds: number;
  /** 0: no limit. */
  minutes: number;
  log(line: string): void;
  /** Milliseconds; for tests. */
  now?(): number;
}

/**
 * Measures what the record does not have yet: round by round, in each the columns, in each the sides, forwards and
 * backwards by turns. With a limit it stops in front of what would not end in time by what it took before.
 *
 *   round 1   column a: side 1, 2, 3   column b: side 1, 2, 3   ...
 *   round 2   column a: side 3, 2, 1   column b: side 3, 2, 1   ...
 *
 * @returns whether everything is there.
 */
export async function takeTurns<S>(turns: Turns<S>, record: ComparisonRecord): Promise<boolean> {
  const { columns, minutes, log, now = () => performance.now() } = turns;
  const end = minutes > 0 ? now() + minutes * 60_000 : Number.POSITIVE_INFINITY;
  for (const side of turns.sides) {
    const dropped = record.enter(side);
    if (dropped > 0) log(`${side.name} has changed: ${dropped} earlier measurements are dropped`);
  }
  for (let round = 1; round <= turns.rounds; round++) {
    const sides = round % 2 === 1 ? turns.sides : turns.sides.toReversed();
    for (const { name: column, shape } of columns) {
      for (const side of sides) {
        if (side.measures?.(shape) === false || record.has(round, side.name, column)) continue;
        const start = now();
        if (start + 1000 * record.expectedSeconds(side.name, column) > end) {
          log(`time is up in front of round ${round}, ${column}, ${side.name}; --resume goes on there`);
          return false;
        }
        const values = await side.measure(shape);
        const seconds = (now() - start) / 1000;
        record.add({ round, side: side.name, column, values, seconds, at: new Date().toISOString() });
        log(`round ${round}  ${column}  ${side.name}  ${summary(values)}  (${seconds.toFixed(1)} s)`);
      }
    }
  }
  return true;
}

function summary(values: Readonly<Record<string, number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${value.toPrecision(4)}`)
    .join('  ');
}
