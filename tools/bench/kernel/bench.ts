import { availableParallelism } from 'node:os';
import { countOf, listOf } from '../../compare/flags.js';
import { defineBench, forEachKind, sectionOfKernels } from '../bench.js';
import { chooseTable, DTYPES, type Dtype, isQuantized, loadKernels } from './hooks.js';
import { attentionTable, besideTable, gemmTable, readingTable, roundingLine } from './tables.js';

const FLAGS = {
  isa: { argument: 'NAME', help: 'instruction set of the kernels (default: the best of this processor)' },
  beside: {
    argument: 'NAME',
    default: '',
    help: 'measure only how many times as fast as this instruction set, by turns, with quantised weights and an int8 cache',
  },
  weights: { argument: 'LIST', default: DTYPES.join(','), help: `formats (default ${DTYPES.join(',')})` },
  threads: {
    argument: 'N',
    default: String(availableParallelism()),
    help: 'threads that read, besides one (default: all)',
  },
} as const;

/**
 * AVX-VNNI is measured in addition to AVX2, to which a machine that has it can be limited. AMX is asked for
 * by its name alone, and so has no place among the kinds of machines.
 */
const OWN_SECTIONS = ['avxvnni', 'amx'];

/**
 * Measures the native kernels, in about half a minute. Each GEMM shape is compared with a register-only loop
 * of the same instruction mix measured in the same run, the rate at which one row streams the weights with
 * plain reading, by one thread and by all.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/kernels.md',
  sections: [...forEachKind('kernels'), ...OWN_SECTIONS.map((isa) => `kernels-${isa}`), 'kernels-compared'],
  run(flags, { report }) {
    const kernels = loadKernels();
    const isa = chooseTable(kernels, flags.isa);
    const dtypes = dtypesOf(flags.weights);
    if (flags.beside !== '') {
      const other = chooseTable(kernels, flags.beside);
      report({
        section: 'kernels-compared',
        conditions: `kernels of ${isa} compared with those of ${other}`,
        lines: [
          'Times as fast, on one thread; the best of many short rounds of processor time of both by turns:',
          '',
          besideTable(kernels, isa, other, dtypes.filter(isQuantized)),
        ],
      });
      return;
    }
    const threads = [...new Set([1, countOf('threads', flags.threads)])];
    report({
      section: sectionOfKernels('kernels', isa, OWN_SECTIONS),
      conditions: `kernels of ${isa}`,
      lines: [
        'One thread, the best of many short rounds of processor time; products as shares of a register-only loop of their own',
        'instruction mix:',
        '',
        gemmTable(kernels, isa, dtypes),
        '',
        'Weights streamed from memory (a product of one row with 256 MiB of weights, k 1536), compared with plain reading of 512 MiB, the',
        'best of several distances of prefetching; wall clock, the best of 15 runs:',
        '',
        readingTable(kernels, isa, dtypes, threads),
        '',
        'Attention of one sequence on one thread, 9 heads of 64 over 3 heads of keys and values:',
        '',
        attentionTable(kernels, isa),
        '',
        roundingLine(kernels, isa, dtypes),
      ],
    });
  },
});

/** @throws where a name of the list is no format of weights. */
function dtypesOf(list: string): Dtype[] {
  return listOf(list).map((name) => {
    const dtype = DTYPES.find((known) => known === name);
    if (dtype === undefined)
      throw new Error(`--weights: expected some of ${DTYPES.join(', ')}, found '${name}'.`);
    return dtype;
  });
}
