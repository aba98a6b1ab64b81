import { option, says } from '../../base/named-text.js';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/** Options that decide whether an engine runs in a process of its own, and those that have no meaning there. */
export type IsolationParams = { [Name in 'isolate' | 'computeWeight']?: OptionalParams[Name] | undefined };

/** @throws ParameterError for an option that has no meaning for an engine in a process of its own */
export function checkIsolation({ isolate, computeWeight = 1 }: IsolationParams): void {
  if (isolate && computeWeight !== 1) {
    throw new ParameterError(
      'computeWeight',
      says`${option('computeWeight')} is refused: an engine in a process of its own takes no turns with others; leave it or isolate out.`,
    );
  }
}
