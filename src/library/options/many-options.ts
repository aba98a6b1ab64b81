import { COUNT, callback, shown } from '../../../base/option-values.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';
import type { ManyOptions } from '../complete-many.js';

const RULES: Rules<ManyOptions> = { maxInFlight: COUNT, onProgress: callback(), signal: SIGNAL };

/** Checks all but the requests themselves, each of which fails by itself. @throws InvalidRequestError */
export function checkManyOptions(requests: unknown, options: unknown): void {
  const fault = optionFault<ManyOptions>('completeMany', '{ maxInFlight: 64 }', options, RULES);
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
  if (Array.isArray(requests)) return;
  throw new InvalidRequestError(
    `completeMany needs a list of requests; it was given ${shown(requests)}.`,
    'requests',
  );
}
