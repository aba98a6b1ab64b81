import { createRequire } from 'node:module';
import { messageOf } from '../../base/error-text.js';
import { asSentence } from '../../base/sentences.js';
import { UsageError } from '../errors/user-errors.js';

/**
 * Parses the content of a file in JSON or YAML. @param what the file, as the beginning of a sentence. @throws
 * UsageError.
 */
export function parseYaml(text: string, what: string): unknown {
  try {
    // The parser is loaded only for a file, since it takes a tenth of the start. JSON is YAML too.
    const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
    return yaml.parse(text);
  } catch (error) {
    // After its first line the message draws the place of the fault.
    const [reason] = messageOf(error).split('\n');
    throw new UsageError(`${what} is neither JSON nor YAML: ${asSentence(reason!)}`);
  }
}
