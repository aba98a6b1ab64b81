/**
 * Micro-benchmark of the native kernels. See --help.
 *
 *     npm run build:native && npx tsx tools/kernel-bench/main.ts            prints the tables
 *     npm run build:native && npx tsx tools/kernel-bench/main.ts --write    writes them into BENCHMARKS.md
 *
 * Each GEMM shape stands beside a register-only loop of the same instruction mix measured in the same run, the rate at
 * which one row streams the weights beside plain reading, by one thread and by all.
 */
import { availableParallelism } from 'node:os';
import { describeMachine, machineLine } from '../../base/machine.js';
import { countOf, type FlagTable, flagsOrHelp, listOf } from '../compare/flags.js';
import { writeSection } from '../document-section.js';
import { chooseTable, DTYPES, type Dtype, loadKernels } from './hooks.js';
import { attentionTable, gemmTable, readingTable, roundingLine } from './tables.js';

const FLAGS = {
  isa: { argument: 'NAME', help: 'instruction set of the kernels (default: the best of this processor)' },
  weights: { argument: 'LIST', default: DTYPES.join(','), help: `formats (default ${DTYPES.join(',')})` },
  threads: {
    argument: 'N',
    default: String(availableParallelism()),
    help: 'threads that read, beside one (default: all)',
  },
  write: { help: 'write the tables into BENCHMARKS.md too' },
} as const satisfies FlagTable;

function main(): void {
  const flags = flagsOrHelp(
    FLAGS,
    'Measures the native kernels and prints Markdown tables, in about half a minute.',
  );
  if (flags === null) return;
  const kernels = loadKernels();
  const isa = chooseTable(kernels, flags.isa);
  const dtypes = listOf(flags.weights).map((name) => {
    const dtype = DTYPES.find((known) => known === name);
    if (dtype === undefined)
      throw new Error(`--weights: expected some of ${DTYPES.join(', ')}, found '${name}'.`);
    return dtype satisfies Dtype;
  });
  const threads = [...new Set([1, countOf('threads', flags.threads)])];
  const report = [
    `${machineLine(describeMachine())}; kernels of ${isa}.`,
    '',
    'One thread, the best of many short rounds of processor time; products as shares of a register-only loop of their own',
    'instruction mix:',
    '',
    gemmTable(kernels, isa, dtypes),
    '',
    'Weights streamed from memory (a product of one row with 256 MiB of weights, k 1536), beside plain reading of 512 MiB, the',
    'best of several distances of prefetching; wall clock, the best of 15 runs:',
    '',
    readingTable(kernels, isa, dtypes, threads),
    '',
    'Attention of one sequence on one thread, 9 heads of 64 over 3 heads of keys and values:',
    '',
    attentionTable(kernels, isa),
    '',
    roundingLine(kernels, isa, dtypes),
  ]
    .join('\n')
    .trim();
  console.log(report);
  // By the kernels, not by the machine: one with AVX-512 can run those of AVX2 too.
  if (flags.write)
    writeSection('BENCHMARKS.md', `kernels-${isa.startsWith('avx512') ? 'avx512' : 'avx2'}`, report);
}

main();
