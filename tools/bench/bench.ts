import { describeMachine } from '../../base/machine.js';
import { type FlagTable, type FlagValues, readFlags } from '../compare/flags.js';
import { writeSection } from '../document-section.js';
import { machineLine } from '../support/machine-words.js';

/** Findings of a bench for one section of its document. */
export interface Report {
  /** Name of the section. */
  section: string;
  /** Follows the machine in the first line: kernels, threads, weights, number of rounds. */
  conditions: string;
  /** Tables and sentences below that line. */
  lines: readonly string[];
}

/** Output of a running bench: progress goes to stderr, reports to stdout and, with --write, into the document. */
export interface BenchOutput {
  progress(line: string): void;
  report(report: Report): void;
}

/** A bench: its flags, where its tables stand, and the measurement itself. */
export interface BenchDefinition<T extends FlagTable> {
  flags: T;
  /** The document that --write changes, named from the root of the repository; null where the bench writes none. */
  document: string | null;
  /** Names of the sections of that document that this bench may write. */
  sections: readonly string[];
  /** Name in the help for the arguments after `--`; a bench without it refuses arguments there. */
  rest?: string;
  /** @param rest what stands after `--` on the command line. */
  run(flags: FlagValues<T>, output: BenchOutput, rest: readonly string[]): Promise<void> | void;
}

/** A bench whose flags have been bound to their types. */
export interface Bench {
  flags: FlagTable;
  document: string | null;
  sections: readonly string[];
  rest?: string;
  /** Reads `args`, measures and reports. @throws where a flag is unknown or a value is out of range. */
  start(args: readonly string[], io?: BenchIo): Promise<void>;
}

/** Streams for a bench's lines; tests replace them. */
export interface BenchIo {
  print(text: string): void;
  progress(line: string): void;
  write(document: string, section: string, text: string): void;
}

const CONSOLE: BenchIo = {
  print: (text) => console.log(text),
  progress: (line) => console.error(line),
  write: writeSection,
};

/** The flags of all benches. */
const SHARED_FLAGS = {
  note: { argument: 'TEXT', default: '', help: 'a sentence to stand after the machine and the conditions' },
  write: { help: 'write the tables into the document too' },
} as const satisfies FlagTable;

export function defineBench<T extends FlagTable>(bench: BenchDefinition<T>): Bench {
  const { document, sections, rest } = bench;
  const flags = { ...bench.flags, ...SHARED_FLAGS };
  const start = async (args: readonly string[], io: BenchIo = CONSOLE) => {
    const end = args.indexOf('--');
    const own = end < 0 ? args : args.slice(0, end);
    const behind = end < 0 ? [] : args.slice(end + 1);
    if (behind.length > 0 && rest === undefined)
      throw new Error(`This bench expects nothing after --, found ${behind.join(' ')}.`);
    const { note, write, ...values } = readFlags(flags, [...own]) as FlagValues<typeof SHARED_FLAGS>;
    if (write && document === null) throw new Error('--write: this bench has no section of a document.');
    const report = (found: Report) => {
      if (document !== null && !sections.includes(found.section))
        throw new Error(`${document}: expected one of ${sections.join(', ')}, found ${found.section}.`);
      const text = textOf(found, note);
      io.print(text);
      if (write && document !== null) io.write(document, found.section, text);
    };
    await bench.run(values as FlagValues<T>, { progress: io.progress, report }, behind);
  };
  return { flags, document, sections, ...(rest === undefined ? {} : { rest }), start };
}

function textOf({ conditions, lines }: Report, note: string): string {
  const head = `${[machineLine(describeMachine()), conditions].filter(Boolean).join('; ')}.${note && ` ${note}`}`;
  return `${head}\n\n${lines.join('\n').trim()}`;
}

/**
 * The section for kernels of an instruction set, since a machine with AVX-512 can run those of AVX2 too. `own`: sets that have a section of
 * their own.
 */
export function sectionOfKernels(name: string, isa: string, own: readonly string[] = []): string {
  if (own.includes(isa)) return `${name}-${isa}`;
  return `${name}-${isa.startsWith('avx512') || isa === 'amx' ? 'avx512' : 'avx2'}`;
}

/** A section for each kind of machine, as `sectionOf` names them. */
export function forEachKind(...names: string[]): string[] {
  return names.flatMap((name) => [`${name}-avx2`, `${name}-avx512`]);
}
