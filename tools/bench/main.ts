/**
 * All benches behind one entry:
 *
 *     npm run bench                          lists them
 *     npm run bench -- NAME --help           the flags of one
 *     npm run bench -- NAME [options]        measures and prints Markdown tables; --write puts them into the bench's document
 */
import { fileURLToPath } from 'node:url';
import { closestName } from '../../base/did-you-mean.js';
import { describeFlags } from '../compare/flags.js';
import type { BenchIo } from './bench.js';
import { BENCHES } from './benches.js';

/** The names of all benches with what they measure, in columns. */
export function benchList(): string {
  const width = Math.max(...Object.keys(BENCHES).map((name) => name.length));
  const lines = Object.entries(BENCHES).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return ['Usage: npm run bench -- NAME [options]', '', ...lines].join('\n');
}

/** Text that --help prints for a bench. */
export async function benchHelp(name: string): Promise<string> {
  const { summary, load } = entryOf(name);
  const { flags, document, rest } = (await load()).bench;
  return [
    `npm run bench -- ${name} [options]${rest === undefined ? '' : ` [-- ${rest}]`}`,
    '',
    `Measures ${summary}.${document === null ? '' : ` Its tables stand in ${document}.`}`,
    '',
    describeFlags(flags),
  ].join('\n');
}

/** Runs what a command line asks for. @throws where it names no bench, or a bench refuses its flags. */
export async function runBenches(args: readonly string[], io?: BenchIo): Promise<void> {
  const [name, ...own] = args;
  const print = io?.print ?? ((text: string) => console.log(text));
  if (name === undefined || name === '--help') return print(benchList());
  if (own.includes('--help')) return print(await benchHelp(name));
  const { bench } = await entryOf(name).load();
  await bench.start(own, io);
}

function entryOf(name: string) {
  const entry = BENCHES[name];
  if (entry !== undefined) return entry;
  const names = Object.keys(BENCHES);
  const near = closestName(name, names);
  const hint = near === null ? '' : ` Did you mean ${near}?`;
  throw new Error(`There is no bench '${name}': expected one of ${names.join(', ')}.${hint}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runBenches(process.argv.slice(2));
