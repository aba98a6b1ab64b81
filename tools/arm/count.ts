/**
 * Instructions of the inner loops of ARM's kernels, as the cross compiler makes them, and LLVM's estimate of their cycles: what can be
 * said of speed without a machine. Prints a table in Markdown.
 *
 *     npx tsx tools/arm/count.ts
 *     npx tsx tools/arm/count.ts --peer build/ggml/quants.o --peer build/ggml/repack.o --write
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeSection } from '../document-section.js';
import { readGyp } from '../prebuild/read-gyp.mjs';
import { markdownTable } from '../support/markdown-table.js';
import { checkPrograms, folder, root } from './emulated-machine.js';
import { countOf, cyclesOf, functionsOf, type Loop, loopWith } from './loops.js';

const HELP = `Counts instructions of the inner loops of ARM's kernels.

  --mca PROGRAM   llvm-mca of LLVM 17 or newer (default: llvm-mca-19); where it is missing, cycles are left out
  --peer FILE     object files of llama.cpp's ggml-cpu/arch/arm/quants.c and repack.cpp, made by the same compiler for
                  armv8.2-a+dotprod+i8mm (once for each file)
  --write         writes the table into docs/lab/kernels.md`;

/** LLVM's models of cores, which have the rates of ARM's own guides, and of the instructions below those that a core does not have. */
const CORES = [
  { name: 'neoverse-n1', title: 'Neoverse N1, products a cycle', lacks: ['smmla', 'bfdot', 'bfmmla'] },
  { name: 'neoverse-v1', title: 'Neoverse V1', lacks: [] },
  { name: 'neoverse-v2', title: 'Neoverse V2', lacks: [] },
] as const satisfies { name: string; title: string; lacks: string[] }[];

interface Kernel {
  label: string;
  /** File of kernels that it is in. */
  source: string;
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
  name,
  instruction,
  products,
});
const dot = (label: string, name: RegExp): Kernel => ({
  ...neon(label, name, 'sdot', 16),
  source: 'neondot',
});
const i8mm = (label: string, name: RegExp): Kernel => ({
  ...neon(label, name, 'smmla', 32),
  source: 'neoni8mm',
});
const bf16 = (label: string, name: RegExp, instruction: string, products: number): Kernel => ({
  ...neon(label, name, instruction, products),
  source: 'neonbf16',
});

const [INT8, INT4, Q6K] = [2, 3, 6];
const superblocks = (rows: number) =>
  new RegExp(`superblockSums<.*, ${rows}, .*PackedGroups<.*DType\\)${Q6K}>`);

const KERNELS: readonly Kernel[] = [
  neon('f32, 1 row', /::sums<.*DType\)0>, 1, 4>/, 'fmla', 4),
  neon('f32, 6 rows', /::sums<.*DType\)0>, 6, 1>/, 'fmla', 4),
  neon('bf16 in f32, 6 rows', /::sums<.*Bf16Steps.*, 6, 1>/, 'fmla', 4),
  bf16('bf16, `bfdot`, 1 row', /::sums<.*Bf16Steps.*, 1, 4>/, 'bfdot', 8),
  bf16('bf16, `bfmmla`, 6 rows', /sumsOfRows<6, 1>/, 'bfmmla', 16),
  neon('int8 without dot products, 6 rows', quants(INT8, 6), 'sadalp', 16),
  dot('int8, `sdot`, 1 row', quants(INT8, 1)),
  dot('int8, `sdot`, 6 rows', quants(INT8, 6)),
  i8mm('int8, `smmla`, 6 rows', quants(INT8, 6)),
  neon('int4 without dot products, 6 rows', quants(INT4, 6), 'sadalp', 16),
  dot('int4, `sdot`, 1 row', quants(INT4, 1)),
  dot('int4, `sdot`, 6 rows', quants(INT4, 6)),
  i8mm('int4, `smmla`, 6 rows', quants(INT4, 6)),
  dot('q6_k, `sdot`, 1 row', superblocks(1)),
  i8mm('q6_k, `smmla`, 6 rows', superblocks(6)),
  neon('attention, scores, f32 cache', /::scoreTile<.*, 3, false, float>/, 'fmla', 4),
  neon('attention, scores, int8 cache', /quantizedScoreTile<.*, 6, false>/, 'smlal', 8),
  bf16('attention, scores, bf16 cache, `bfdot`', /pairedScoreTile<.*, 6, false, int>/, 'bfdot', 8),
];

/** Functions of llama.cpp that an ARM processor with dot products, or with I8MM, computes with. */
const PEERS: readonly Omit<Kernel, 'source' | 'name'>[] = [
  { label: 'ggml_gemv_q8_0_4x4_q8_0', instruction: 'sdot', products: 16 },
  { label: 'ggml_gemm_q8_0_4x4_q8_0', instruction: 'sdot', products: 16 },
  { label: 'ggml_gemm_q8_0_4x8_q8_0', instruction: 'smmla', products: 32 },
  { label: 'ggml_gemv_q4_0_4x4_q8_0', instruction: 'sdot', products: 16 },
  { label: 'ggml_gemm_q4_0_4x4_q8_0', instruction: 'sdot', products: 16 },
  { label: 'ggml_gemm_q4_0_4x8_q8_0', instruction: 'smmla', products: 32 },
  { label: 'ggml_gemm_q4_K_8x8_q8_K', instruction: 'smmla', products: 32 },
  { label: 'ggml_vec_dot_q8_0_q8_0', instruction: 'sdot', products: 16 },
  { label: 'ggml_vec_dot_q4_1_q8_1', instruction: 'sdot', products: 16 },
  { label: 'ggml_vec_dot_q4_1_q8_1', instruction: 'smmla', products: 32 },
  { label: 'ggml_vec_dot_q6_K_q8_K', instruction: 'sdot', products: 16 },
];

/** Compiles a file of kernels as binding.gyp does, and returns the object file. */
function compiled({ source }: Kernel): string {
  const file = `engine/executors/native/kernels/${source}.cpp`;
  const target = readGyp(root, { os: 'linux', cpu: 'arm64' }).find(({ sources }) => sources.includes(file));
  if (target === undefined) throw new Error(`binding.gyp does not compile ${file} for ARM.`);
  const object = join(folder, 'count', `${source}.o`);
  mkdirSync(join(folder, 'count'), { recursive: true });
  const includes = target.includes.flatMap((path) => ['-I', join(root, path)]);
  const args = [...target.flags, ...includes, '-c', join(root, file), '-o', object];
  execFileSync('aarch64-linux-gnu-g++', args);
  return object;
}

interface Counted extends Pick<Kernel, 'label' | 'instruction' | 'products'> {
  loop: Loop;
}

/** @throws where a kernel has no function of the name that it is known by */
function ownLoops(): Counted[] {
  const objects = new Map<string, ReturnType<typeof functionsOf>>();
  return KERNELS.map((kernel) => {
    if (!objects.has(kernel.source)) objects.set(kernel.source, functionsOf(compiled(kernel)));
    const found = [...objects.get(kernel.source)!].find(([name]) => kernel.name.test(name));
    if (found === undefined) throw new Error(`${kernel.source}.cpp has no function for "${kernel.label}"`);
    return { ...kernel, loop: loopWith(found[1], kernel.instruction) };
  });
}

/** @throws where no file has one of the functions */
function peerLoops(files: readonly string[]): Counted[] {
  const functions = new Map(files.flatMap((file) => [...functionsOf(file)]));
  return PEERS.map((peer) => {
    const found = functions.get(peer.label);
    if (found === undefined) throw new Error(`${files.join(', ')}: no function ${peer.label}`);
    const label = `llama.cpp, \`${peer.label}\`, \`${peer.instruction}\``;
    return { ...peer, label, loop: loopWith(found, peer.instruction) };
  });
}

function rowOf({ label, loop, instruction, products }: Counted, mca: string): (string | number)[] {
  const total = countOf(loop, instruction) * products;
  const perCycle = CORES.map(({ name, lacks }) => {
    const cycles = (lacks as readonly string[]).includes(instruction) ? null : cyclesOf(loop, name, mca);
    return cycles === null ? '' : (total / cycles).toFixed(1);
  });
  return [label, loop.instructions, total, (total / loop.instructions).toFixed(1), ...perCycle];
}

function main(): void {
  const { values: flags } = parseArgs({
    options: {
      help: { type: 'boolean' },
      mca: { type: 'string', default: 'llvm-mca-19' },
      peer: { type: 'string', multiple: true, default: [] },
      write: { type: 'boolean', default: false },
    },
  });
  if (flags.help) {
    console.log(HELP);
    return;
  }
  checkPrograms();
  const loops = [...ownLoops(), ...(flags.peer.length === 0 ? [] : peerLoops(flags.peer))];
  const head = ['kernel', 'instructions of a pass', 'products', 'products an instruction'];
  const cores = CORES.map(({ title }) => title);
  const table = markdownTable(
    [...head, ...cores],
    loops.map((loop) => rowOf(loop, flags.mca)),
  );
  if (flags.write) writeSection('docs/lab/kernels.md', 'arm-counts', table);
  else console.log(table);
}

main();
