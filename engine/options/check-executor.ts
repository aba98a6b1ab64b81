import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { checkOptionsOf } from './option-effects.js';

/** Throws a ParameterError if an option cannot be honoured by the named executor. */
export function checkExecutor(params: OptionalParams): void {
  const { executor, executorModule } = params;
  if (executor === undefined || executor === 'auto') return;
  if (executorModule !== undefined) {
    throw new ParameterError(
      'executor',
      'executor is refused: executorModule brings an executor of its own; leave one of them out.',
    );
  }
  checkOptionsOf(executor, params);
}
