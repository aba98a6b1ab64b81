import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { EXECUTOR_NAMES } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { checkOptionsOf } from './option-effects.js';

/** Throws a ParameterError for an executor that there is not, and for options beside it that it cannot honour. */
export function checkExecutor(params: OptionalParams): void {
  const { executor, executorModule } = params;
  if (executor === undefined || executor === 'auto') return;
  if (!EXECUTOR_NAMES.includes(executor)) {
    throw new ParameterError(
      'executor',
      `executor is ${String(executor)}; it must be one of auto, ${EXECUTOR_NAMES.join(', ')}.`,
    );
  }
  if (executorModule !== undefined) {
    throw new ParameterError(
      'executor',
      'executor is refused: executorModule brings an executor of its own; leave one of them out.',
    );
  }
  checkOptionsOf(executor, params);
}
