import { describeMachine, type Machine } from '../../base/machine.js';

/** Vector extensions of machines without AVX-512, as describeMachine names them. */
const OF_AVX2 = ['avx2', 'fma', 'f16c'];

/**
 * True where SKEIN_ISA, which Skein's native executor obeys by itself, holds all sides of a comparison to AVX2: a machine that has more then
 * measures what one without would. @throws where it names another set, to which the others cannot be held.
 */
export function isHeldToAvx2(): boolean {
  const isa = process.env.SKEIN_ISA ?? '';
  if (isa === '' || isa === 'avx2') return isa === 'avx2';
  throw new Error(`SKEIN_ISA: a comparison can be held to avx2 and nothing else, found '${isa}'.`);
}

/** The machine as the sides of a comparison see it. */
export function comparedMachine(): Machine {
  const machine = describeMachine();
  if (!isHeldToAvx2() || machine.features.every((name) => OF_AVX2.includes(name))) return machine;
  return {
    ...machine,
    cpu: `${machine.cpu} held to AVX2`,
    features: machine.features.filter((name) => OF_AVX2.includes(name)),
  };
}

/** The folder in a peer's source that it is built in, and the options that give cmake the instruction set. */
export function ggmlBuild(): { folder: string; options: string[] } {
  if (!isHeldToAvx2()) return { folder: 'build', options: ['-DGGML_NATIVE=ON'] };
  const sets = ['SSE42', 'AVX', 'AVX2', 'BMI2', 'FMA', 'F16C'].map((name) => `-DGGML_${name}=ON`);
  return { folder: 'build-avx2', options: ['-DGGML_NATIVE=OFF', ...sets] };
}

/** The environment of a peer whose products are oneDNN's. */
export function oneDnnEnvironment(): NodeJS.ProcessEnv {
  return isHeldToAvx2() ? { ...process.env, ONEDNN_MAX_CPU_ISA: 'AVX2' } : process.env;
}
