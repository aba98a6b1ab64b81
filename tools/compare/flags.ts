import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** A flag of a tool: with `argument` (how the help names it) it takes a value, else it is on or off. */
export interface Flag {
  argument?: string;
  default?: string;
  help: string;
}
export type FlagTable = Readonly<Record<string, Flag>>;
export type FlagValues<T extends FlagTable> = {
  [K in keyof T]: T[K] extends { argument: string } ? string : boolean;
};

/** Model, peers and threads: every comparison is made with them. */
export const SIDES_FLAGS = {
  model: {
    argument: 'PATH',
    default: process.env.SKEIN_TEST_MODEL ?? '',
    help: 'folder with one GGUF, or a GGUF (default: SKEIN_TEST_MODEL)',
  },
  peers: {
    argument: 'DIR',
    default: process.env.SKEIN_PEERS ?? join(homedir(), '.cache', 'skein-peers'),
    help: 'where the peers lie or are fetched and built (default: SKEIN_PEERS, ~/.cache/skein-peers)',
  },
  threads: {
    argument: 'N',
    default: String(availableParallelism()),
    help: 'threads of each side (default: all)',
  },
} as const satisfies FlagTable;

/** Flags for the turns of a comparison and the place of its results. */
export const TURNS_FLAGS = {
  rounds: { argument: 'N', default: '5', help: 'alternations; medians are reported (default 5)' },
  minutes: {
    argument: 'N',
    default: '0',
    help: 'begin nothing that would end later than this (default 0: no limit)',
  },
  only: {
    argument: 'LIST',
    default: '',
    help: 'of all that, only these engines, formats and columns, as in skein:int4,1x128',
  },
  resume: { help: 'go on with what FILE has; what another version of a side gave is measured again' },
  report: { help: 'measure nothing, report what FILE has' },
  write: { help: 'write the tables into BENCHMARKS.md and docs/lab too' },
} as const satisfies FlagTable;

/** Flag for the file of measurements; each one is written as it comes. */
export function outputFlag(file: string) {
  return {
    output: { argument: 'FILE', default: file, help: `the measurements as JSON (default ${file})` },
  } as const satisfies FlagTable;
}

/** The flags of a command line. @throws for one that is not in the table. */
export function readFlags<T extends FlagTable>(
  table: T,
  args: string[] = process.argv.slice(2),
): FlagValues<T> {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, flag]) => [
      name,
      flag.argument === undefined
        ? ({ type: 'boolean', default: false } as const)
        : ({ type: 'string', default: flag.default ?? '' } as const),
    ]),
  );
  return parseArgs({ args, options }).values as FlagValues<T>;
}

/** The flags of this process; null where it was asked for --help, which is printed then. */
export function flagsOrHelp<T extends FlagTable>(table: T, purpose: string): FlagValues<T> | null {
  if (!process.argv.includes('--help')) return readFlags(table);
  console.log(`${purpose}\n\n${describeFlags(table)}`);
  return null;
}

/** Help for the flags: a line for each, in columns. */
export function describeFlags(table: FlagTable): string {
  const heads = Object.entries(table).map(
    ([name, { argument }]) => `--${name}${argument ? ` ${argument}` : ''}`,
  );
  const width = Math.max(...heads.map((head) => head.length));
  return Object.values(table)
    .map(({ help }, i) => `  ${heads[i]!.padEnd(width)}  ${help}`)
    .join('\n');
}

/** A whole number that is at least `least`. @throws naming the flag. */
export function countOf(name: string, value: string, least = 1): number {
  const count = Number(value);
  if (!Number.isInteger(count) || count < least)
    throw new Error(`--${name}: expected a whole number of at least ${least}, found '${value}'.`);
  return count;
}

/** The parts of a list; empty for '' and for 'none'. */
export function listOf(value: string): string[] {
  return value === '' || value === 'none' ? [] : value.split(',').map((part) => part.trim());
}
