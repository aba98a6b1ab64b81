import { closestName } from '../../base/did-you-mean.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import { UsageError } from './config.js';

/**
 * Values of SKEIN_ISA, from the slowest to the fastest of a processor. The engine reports which of them the
 * machine runs.
 */
export const INSTRUCTION_SETS = Object.keys({
  scalar: true,
  avx2: true,
  avxvnni: true,
  avx512: true,
  avx512bf16: true,
  amx: true,
  neon: true,
  neonbf16: true,
} satisfies Record<InstructionSet, true>);

/** @throws UsageError for a value of SKEIN_ISA that no machine has. */
export function checkInstructionSet(value: string | undefined): void {
  if (value === undefined || value === '' || INSTRUCTION_SETS.includes(value)) return;
  const meant = closestName(value, INSTRUCTION_SETS);
  const hint = meant === null ? '' : ` Did you mean ${meant}?`;
  throw new UsageError(
    `SKEIN_ISA is ${JSON.stringify(value)}; it must be one of ${INSTRUCTION_SETS.join(', ')}.${hint}`,
  );
}
