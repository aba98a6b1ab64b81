import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { ModelConfigError } from './model-config-error.js';

const MOST_BYTES = 16 * 2 ** 20;

/** Labels of the classes of an output, one a line, in the order of its elements. @throws ModelConfigError */
export function readLabels(modelDirectory: string, filename: string): string[] {
  const file = join(modelDirectory, filename);
  let text: string;
  try {
    const { size } = statSync(file);
    if (size > MOST_BYTES) {
      throw new ModelConfigError(`${file} has ${size} bytes; at most ${MOST_BYTES} are taken.`);
    }
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof ModelConfigError) throw error;
    throw new ModelConfigError(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const lines = text.split(/\r?\n/);
  while (lines.at(-1) === '') lines.pop();
  return lines;
}
