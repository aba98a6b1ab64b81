import { createRequire } from 'node:module';
import { messageOf } from '../base/error-text.js';
import { asSentence } from '../base/sentences.js';
import { UsageError } from './usage-error.js';

/** The content of a file in JSON or YAML. `what` is the file, as a sentence begins. @throws UsageError. */
export function parseYaml(text: string, what: string): unknown {
  try {
    // Loaded only where there is a file: it takes a tenth of the start. JSON is YAML too.
    const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
    return yaml.parse(text);
  } catch (error) {
    // Below its first line the parser draws where it stopped.
    const [reason] = messageOf(error).split('\n');
    throw new UsageError(`${what} is neither JSON nor YAML: ${asSentence(reason!)}`);
  }
}
