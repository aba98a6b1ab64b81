import type { Smollm2Prompt } from '../../tools/support/goldens.js';
import type { SequenceDriver } from '../../tools/support/sequence-driver.js';

/** Prompt and reference continuation in one sequence: the logits at each position that the golden speaks of. */
export function teacherForced(driver: SequenceDriver, { promptIds, tokens, logits }: Smollm2Prompt) {
  const sequence = [...promptIds, ...tokens.slice(0, -1)];
  const first = promptIds.length - 1;
  const steps = tokens.map((_, step) => first + step);
  const positions = [...new Set([...logits.map(({ position }) => position), ...steps])].sort((a, b) => a - b);
  driver.begin(sequence.length);
  const found = driver.logitsAt(sequence, positions, sequence.length);
  const at = (position: number) => found[positions.indexOf(position)]!;
  return { steps: steps.map(at), chosen: logits.map(({ position }) => at(position)) };
}
