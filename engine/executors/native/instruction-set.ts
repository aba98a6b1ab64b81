import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';

/**
 * Chooses the instruction set to run: the one in the options, else the one in SKEIN_ISA, else the fastest: by what the processor is alone, so
 * that equal machines give equal bits. `supported` goes from the slowest to the fastest. Throws if this processor does not run the named one.
 */
export function chooseInstructionSet(
  supported: readonly InstructionSet[],
  requested: InstructionSet | undefined,
  environment: string | undefined,
): InstructionSet {
  const wanted = requested ?? environment;
  const fastest = supported.at(-1)!;
  if (wanted === undefined || wanted === '') return fastest;
  const found = supported.find((name) => name === wanted);
  if (found !== undefined) return found;
  const source = requested === undefined ? 'SKEIN_ISA' : 'instructionSet';
  throw new Error(
    `${source} is "${wanted}", but this machine runs ${supported.join(', ')}; name one of them, or none for ${fastest}.`,
  );
}
