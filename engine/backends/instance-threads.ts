import type { ModelConfig } from '../../models/repository/model-config.js';
import { BackendError } from './backend-error.js';

/** Threads of one instance: 1 unless its configuration says more, since several instances and batches run beside each other. @throws BackendError */
export function threadsOf({ parameters }: ModelConfig, name: string): number {
  const text = parameters[name]?.string_value;
  if (text === undefined) return 1;
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text);
  throw new BackendError(
    `parameters.${name} is ${JSON.stringify(text)}; a whole number from 1 to 999 is expected.`,
  );
}
