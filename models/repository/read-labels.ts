import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { ModelConfigError } from './model-config-error.js';

/** Of a file that is read and taken apart in the thread which everybody shares. */
const MAX_BYTES = 2 * 2 ** 20;
const MAX_LABELS = 2 ** 18;

/** Labels of the classes of an output, one a line, in the order of its elements. @throws ModelConfigError */
export function readLabels(modelDirectory: string, filename: string): string[] {
  const file = join(modelDirectory, filename);
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > MAX_BYTES) {
      throw new ModelConfigError(`${file} has ${size} bytes; at most ${MAX_BYTES} are taken.`);
    }
    text = readFileSync(file, 'utf8');
    if (numLines(text) > MAX_LABELS) {
      throw new ModelConfigError(`${file} has more than ${MAX_LABELS} labels, which is the limit.`);
    }
  } catch (error) {
    if (error instanceof ModelConfigError) throw error;
    throw new ModelConfigError(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const lines = text.split(/\r?\n/);
  while (lines.at(-1) === '') lines.pop();
  return lines;
}

function numLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
