import { klDivergenceOfTop, type Smollm2Prompt } from '../../tools/support/goldens.js';
import { argmax, type SequenceDriver } from '../../tools/support/sequence-driver.js';
import { mean } from '../../tools/support/statistics.js';

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

/**
 * How far a format of the weights, activations or cache is from the golden in f32: the divergence in nats at
 * its positions, and the share of greedy steps with the same token. `text` says which text it is.
 */
export function divergenceOf(cases: Iterable<{ driver: SequenceDriver; prompt: Smollm2Prompt }>) {
  const divergences: number[] = [];
  let same = 0;
  let comparable = 0;
  for (const { driver, prompt } of cases) {
    const { steps, chosen } = teacherForced(driver, prompt);
    divergences.push(...prompt.logits.map((reference, i) => klDivergenceOfTop(reference, chosen[i]!)));
    comparable += steps.length;
    same += steps.filter((logits, step) => argmax(logits) === prompt.tokens[step]).length;
  }
  const average = mean(divergences);
  const greatest = Math.max(...divergences);
  const text =
    `${divergences.length} positions: KL divergence mean ${average.toExponential(2)}, greatest ${greatest.toExponential(2)} nats; ` +
    `same greedy token at ${same} of ${comparable} steps`;
  return { mean: average, greatest, same: same / comparable, text };
}
