import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Machine } from '../../base/machine.js';
import type { SideInfo, Values } from './side.js';

/** Measurement of a side at a column in one round. */
export interface Measurement {
  round: number;
  side: string;
  column: string;
  values: Values;
  /** Wall time that it took, starting and loading included. */
  seconds: number;
  /** When it ended. */
  at: string;
}

/** Conditions that must be the same for measurements to stand in one table. */
export interface Conditions {
  machine: Machine;
  /** Model, threads and whatever else is one for all columns. */
  settings: Readonly<Record<string, string | number>>;
}

export interface Recorded extends Conditions {
  sides: SideInfo[];
  measurements: Measurement[];
}

/**
 * The measurements of a comparison in a JSON file, which is whole after each of them: a run that is cut short
 * keeps what it has, and another one continues after it.
 */
export class ComparisonRecord {
  readonly #path: string;
  readonly #recorded: Recorded;

  private constructor(path: string, recorded: Recorded) {
    this.#path = path;
    this.#recorded = recorded;
  }

  /** An empty record. A file that is there is kept next to it as FILE.old. */
  static start(path: string, conditions: Conditions): ComparisonRecord {
    if (existsSync(path)) renameSync(path, `${path}.old`);
    return new ComparisonRecord(path, { ...conditions, sides: [], measurements: [] });
  }

  /** Reads the record from its file. @throws if there is none. */
  static read(path: string): ComparisonRecord {
    if (!existsSync(path))
      throw new Error(`${path}: expected the measurements of an earlier run, found no file.`);
    return new ComparisonRecord(path, JSON.parse(readFileSync(path, 'utf8')) as Recorded);
  }

  /** Continues the file, or starts one. @throws where it was measured under other conditions. */
  static resume(path: string, conditions: Conditions): ComparisonRecord {
    if (!existsSync(path)) return ComparisonRecord.start(path, conditions);
    const record = ComparisonRecord.read(path);
    for (const key of ['machine', 'settings'] as const) {
      const [found, expected] = [record.recorded[key], conditions[key]];
      if (!isDeepStrictEqual(found, expected))
        throw new Error(
          `${path} was measured with another ${key}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}.`,
        );
    }
    return record;
  }

  get recorded(): Readonly<Recorded> {
    return this.#recorded;
  }

  /** Takes a side in; what another version of it, or another file of weights, gave is dropped. Returns how much. */
  enter({ name, engine, format, bytes, version }: SideInfo): number {
    const { sides, measurements } = this.#recorded;
    const info = { name, engine, format, bytes, version };
    const index = sides.findIndex((side) => side.name === name);
    if (index < 0) sides.push(info);
    if (index < 0 || isDeepStrictEqual(sides[index], info)) return 0;
    sides[index] = info;
    this.#recorded.measurements = measurements.filter(({ side }) => side !== name);
    return measurements.length - this.#recorded.measurements.length;
  }

  has(round: number, side: string, column: string): boolean {
    return this.#of(side, column).some((measurement) => measurement.round === round);
  }

  add(measurement: Measurement): void {
    this.#recorded.measurements.push(measurement);
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(`${this.#path}.new`, `${JSON.stringify(this.#recorded, null, 1)}\n`);
    renameSync(`${this.#path}.new`, this.#path);
  }

  /** Seconds that the last measurement of this side and column took; 0 if there was none. */
  expectedSeconds(side: string, column: string): number {
    return this.#of(side, column).at(-1)?.seconds ?? 0;
  }

  /** Values of the key, one for each round. */
  values(side: string, column: string, key: string): number[] {
    return this.#of(side, column).flatMap(({ values }) => values[key] ?? []);
  }

  #of(side: string, column: string): Measurement[] {
    return this.#recorded.measurements.filter((m) => m.side === side && m.column === column);
  }
}
