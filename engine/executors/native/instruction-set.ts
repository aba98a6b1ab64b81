import type { InstructionSet } from '../../../callbacks/gpt-manager-options.js';

/**
 * The instruction set to run: what the options name, else what SKEIN_ISA names, else the fastest.
 * `supported` goes from the slowest to the fastest. Throws where this processor does not run the one that is named.
 */
export function chooseInstructionSet(
  supported: readonly InstructionSet[],
  requested: InstructionSet | undefined,
  environment: string | undefined,
): InstructionSet {
  const wanted = requested ?? environment;
  if (wanted === undefined || wanted === '') return supported[supported.length - 1]!;
  const found = supported.find((name) => name === wanted);
  if (found !== undefined) return found;
  const source = requested === undefined ? 'SKEIN_ISA' : 'instructionSet';
  throw new Error(
    `${source} is "${wanted}", but this machine runs ${supported.join(', ')}; name one of them, or none for ${supported[supported.length - 1]}.`,
  );
}
