import { option, says } from '../../base/named-text.js';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/** What says whether an engine runs in a process of its own, and what has no meaning where it does. */
export type IsolationParams = { [Name in 'isolate' | 'computeWeight']?: OptionalParams[Name] | undefined };

/** @throws ParameterError for an option that means nothing to an engine in a process of its own. */
export function checkIsolation({ isolate, computeWeight = 1 }: IsolationParams): void {
  if (isolate && computeWeight !== 1) {
    throw new ParameterError(
      'computeWeight',
      says`${option('computeWeight')} is refused: an engine in a process of its own takes no turns with others; leave it or isolate out.`,
    );
  }
}
