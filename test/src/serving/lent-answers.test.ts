import { expect, it } from 'vitest';
import { LentAnswers } from '../../../src/serving/batched/lent-answers.js';

const ROW = 20_000;

/** After a batch whose rows took `bytesPerRow` bytes each. */
function after(bytesPerRow: number, isLent = true): LentAnswers {
  const answers = new LentAnswers(2, isLent);
  answers.noteSize(3 * bytesPerRow, 3);
  return answers;
}

it('lends memory for as many rows as a batch has, as large as those of the latest one', () => {
  expect(after(ROW).memoryFor(4)!.byteLength).toBeGreaterThanOrEqual(4 * ROW);
});

it('lends none for little, before anything is known, nor where it would not come back', () => {
  expect(after(10).memoryFor(4)).toBeNull();
  expect(new LentAnswers(2, true).memoryFor(4)).toBeNull();
  expect(after(ROW, false).memoryFor(4)).toBeNull();
});

it('lends it again when all responses in it are released, each of which may say so more than once', () => {
  const answers = after(ROW);
  const memory = answers.memoryFor(4)!;
  const { lease, end } = answers.share(new Uint8Array(memory, 0, 100));
  const releases = [lease(), lease()];
  releases[0]!();
  releases[0]!();
  end();
  expect(answers.memoryFor(4)).not.toBe(memory);
  releases[1]!();
  expect(answers.memoryFor(4)).toBe(memory);
});

it('lends it again at once where there is no response in it, or its batch was taken back', () => {
  const answers = after(ROW);
  const memory = answers.memoryFor(4)!;
  answers.share(new Uint8Array(memory, 0, 0)).end();
  expect(answers.memoryFor(4)).toBe(memory);
  answers.giveBack(memory);
  expect(answers.memoryFor(4)).toBe(memory);
});
