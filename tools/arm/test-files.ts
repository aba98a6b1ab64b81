import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './emulated-machine.js';

/** A test file that runs on the emulated machine. */
export interface TestFile {
  path: string;
  /** Pattern of the names of its tests that run; absent: all. */
  names?: string;
  /** True: tests of kernels take fewer shapes, those of the real model fewer prompts. */
  isShort?: boolean;
}

const NATIVE = 'test/engine/executors/native';

const kernelFile = (name: string, names: string): TestFile => ({
  path: `${NATIVE}/kernels/${name}.test.ts`,
  names,
  isShort: true,
});

/**
 * What an emulator does in minutes: products of each format with the bits that x86 has, every other kernel
 * compared with its twin in plain C++, and whole networks, in one precision after another, compared with a
 * naive one. Left out is what has no instruction of its own: the executor's checks, the twins' own tests,
 * larger shapes.
 */
export const SHORT: readonly TestFile[] = [
  kernelFile('stored-bits', 'neon'),
  kernelFile('gemm', 'neonbf16 gives the bits'),
  kernelFile('attention', '(neon|neonbf16) gives the bits'),
  kernelFile('rows', 'neon gives the bits'),
  kernelFile('vocab', 'neon gives the bits'),
  kernelFile('wide-row', 'bits of every other table'),
  {
    path: `${NATIVE}/native-executor.test.ts`,
    names: 'on neon.*(f32, 16 tokens|bf16 weights and cache|a cache in int8)',
    isShort: true,
  },
  { path: 'test/reference/tiny.test.ts', names: 'tiny gqa .* on neon', isShort: true },
];

/** Files that start processes of Node.js: a program for ARM starts none where the system does not know the emulator (binfmt_misc). */
const STARTS_PROCESSES = /^(manager|ranks|smollm2-ranks|steered-ranks|worker-death)$/;
const TESTS_THAT_START_SOME = 'tensorParallelSize|several processes at once';

/** Of the files of the addon's sources, which do not lie next to a bundle. */
const OF_SOURCES = /^units$/;

/** Hours of emulated arithmetic: a tenth of a second to seconds for each token of a model of 135 million weights. */
const REAL_MODEL = /^smollm2/;

/** The plain C++ of the scalar twins has no instruction of its own, other executors none of Skein's; the emulator is slowest there. */
const OF_ARM = `^(?!.*\\b(scalar|wasm|tensorflow|portable|${TESTS_THAT_START_SOME})\\b)`;

const reference = (name: string, names?: string, isShort = false): TestFile => ({
  path: `test/reference/${name}.test.ts`,
  ...(names === undefined ? {} : { names }),
  isShort,
});

/**
 * Whole suites: the real model compared with Hugging Face transformers, adapters and encoders compared with
 * theirs, the bitwise suite, architectures, and everything of the executor's own. Of the real model the short
 * prompts in f32, and a few prompts of each kind where products are of whole numbers.
 */
export function wholeSuites(): TestFile[] {
  return [
    ...['lora', 'encoders', 'tiny', 'architectures', 'windows', 'returned-logits'].map((name) =>
      reference(name, OF_ARM),
    ),
    ...filesOf('test/bitwise')
      .filter(({ name }) => !STARTS_PROCESSES.test(name) && !REAL_MODEL.test(name))
      .map(({ name, path }) => ({ path, names: name === 'known-outputs' ? '^native' : OF_ARM })),
    ...filesOf(NATIVE)
      .filter(({ name }) => !OF_SOURCES.test(name))
      .map(({ path }) => ({ path, names: OF_ARM, isShort: true })),
    reference(
      'smollm2',
      "(one token|two tokens|plain fact|chat capital)'?: (logits|greedy)|diverges little in int[48]$",
      true,
    ),
    reference('lora-smollm2', 'diverges little in int4', true),
  ];
}

function filesOf(folder: string): { name: string; path: string }[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort();
  const ofTests = names.filter((name) => name.endsWith('.test.ts'));
  return ofTests.map((name) => ({ name: name.replace(/\.test\.ts$/, ''), path: `${folder}/${name}` }));
}
