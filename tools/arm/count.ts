/**
 * Instructions of the inner loops of ARM's kernels, as the cross compiler makes them, and LLVM's estimate of their cycles: what can be
 * said of speed without a machine. Prints a table in Markdown.
 *
 *     npx tsx tools/arm/count.ts
 *     npx tsx tools/arm/count.ts --peer build/ggml/quants.o
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkPrograms, folder, root } from './emulated-machine.js';
import { countOf, cyclesOf, functionsOf, type Loop, loopWith } from './loops.js';

const HELP = `Counts instructions of the inner loops of ARM's kernels.

  --mca PROGRAM   llvm-mca of LLVM 17 or newer (default: llvm-mca-19); where it is missing, cycles are left out
  --peer FILE     an object file of llama.cpp's ggml-cpu/arch/arm/quants.c, made by the same compiler`;

const CORES = ['neoverse-n1', 'neoverse-v1', 'neoverse-v2'];

interface Kernel {
  label: string;
  /** File and flags that the kernel is compiled with. */
  source: string;
  march: string;
  /** Of the function's name. */
  name: RegExp;
  /** The instruction that multiplies, and products that one of it adds. */
  instruction: string;
  products: number;
}

const quants = (form: number, rows: number) =>
  new RegExp(`quantizedSums<.*DType\\)${form}, ${rows}, .*PackedGroups<.*DType\\)${form}>`);
const neon = (label: string, name: RegExp, instruction: string, products: number): Kernel => ({
  label,
  source: 'neon',
  march: 'armv8-a',
  name,
  instruction,
  products,
});
const dot = (label: string, name: RegExp): Kernel => ({
  ...neon(label, name, 'sdot', 16),
  source: 'neondot',
  march: 'armv8.2-a+dotprod',
});
const i8mm = (label: string, name: RegExp): Kernel => ({
  ...neon(label, name, 'smmla', 32),
  source: 'neoni8mm',
  march: 'armv8.2-a+dotprod+i8mm',
});
const bf16 = (label: string, name: RegExp, instruction: string, products: number): Kernel => ({
  ...neon(label, name, instruction, products),
  source: 'neonbf16',
  march: 'armv8.2-a+dotprod+bf16',
});

const [INT8, INT4] = [2, 3];
const KERNELS: readonly Kernel[] = [
  neon('f32, 1 row', /::sums<.*DType\)0>, 1, 4>/, 'fmla', 4),
  neon('f32, 6 rows', /::sums<.*DType\)0>, 6, 1>/, 'fmla', 4),
  neon('bf16, 6 rows, in f32', /::sums<.*Bf16Steps.*, 6, 1>/, 'fmla', 4),
  bf16('bf16, 1 row, bfdot', /::sums<.*Bf16Steps.*, 1, 4>/, 'bfdot', 8),
  bf16('bf16, 6 rows, bfmmla', /sumsOfRows<6, 1>/, 'bfmmla', 16),
  neon('int8, 6 rows, plain NEON', quants(INT8, 6), 'sadalp', 16),
  dot('int8, 1 row, sdot', quants(INT8, 1)),
  dot('int8, 6 rows, sdot', quants(INT8, 6)),
  i8mm('int8, 6 rows, smmla', quants(INT8, 6)),
  neon('int4, 6 rows, plain NEON', quants(INT4, 6), 'sadalp', 16),
  dot('int4, 1 row, sdot', quants(INT4, 1)),
  dot('int4, 6 rows, sdot', quants(INT4, 6)),
  i8mm('int4, 6 rows, smmla', quants(INT4, 6)),
  neon('attention, f32 cache, scores', /::scoreTile<.*, 3, false, float>/, 'fmla', 4),
  neon('attention, int8 cache, scores', /quantizedScoreTile<.*, 6, false>/, 'smlal', 8),
  bf16('attention, bf16 cache, scores', /pairedScoreTile<.*, 6, false, int>/, 'bfdot', 8),
];

/** Compiles a file of kernels as binding.gyp does, and returns the object file. */
function compiled({ source, march }: Kernel): string {
  const native = join(root, 'engine/executors/native');
  const object = join(folder, 'count', `${source}.o`);
  const flags = ['-std=c++20', '-O3', '-fPIC', '-ffp-contract=off', '-fno-math-errno', `-march=${march}`];
  const file = join(native, `kernels/${source}.cpp`);
  mkdirSync(join(folder, 'count'), { recursive: true });
  execFileSync('aarch64-linux-gnu-g++', [...flags, '-I', native, '-c', file, '-o', object]);
  return object;
}

function row(label: string, loop: Loop, instruction: string, products: number, mca: string): string {
  const total = countOf(loop, instruction) * products;
  const perCycle = CORES.map((core) => {
    const cycles = cyclesOf(loop, core, mca);
    return cycles === null ? '' : (total / cycles).toFixed(1);
  });
  return `| ${[label, loop.instructions, total, (total / loop.instructions).toFixed(1), ...perCycle].join(' | ')} |`;
}

function main(): void {
  const { values: flags } = parseArgs({
    options: {
      help: { type: 'boolean' },
      mca: { type: 'string', default: 'llvm-mca-19' },
      peer: { type: 'string' },
    },
  });
  if (flags.help) {
    console.log(HELP);
    return;
  }
  checkPrograms();
  const objects = new Map<string, ReturnType<typeof functionsOf>>();
  console.log(`| kernel | instructions | products | products an instruction | ${CORES.join(' | ')} |`);
  console.log(`| --- |${' ---: |'.repeat(3 + CORES.length)}`);
  for (const kernel of KERNELS) {
    if (!objects.has(kernel.source)) objects.set(kernel.source, functionsOf(compiled(kernel)));
    const found = [...objects.get(kernel.source)!].find(([name]) => kernel.name.test(name));
    if (found === undefined) throw new Error(`${kernel.source}.cpp has no function for "${kernel.label}"`);
    const loop = loopWith(found[1], kernel.instruction);
    console.log(row(kernel.label, loop, kernel.instruction, kernel.products, flags.mca));
  }
  if (flags.peer === undefined) return;
  const functions = functionsOf(flags.peer);
  for (const format of ['q8_0', 'q4_0'])
    for (const [instruction, products] of [
      ['sdot', 16],
      ['smmla', 32],
    ] as const) {
      const loop = loopWith(functions.get(`ggml_vec_dot_${format}_q8_0`) ?? [], instruction);
      console.log(row(`llama.cpp's ${format}, ${instruction}`, loop, instruction, products, flags.mca));
    }
}

main();
