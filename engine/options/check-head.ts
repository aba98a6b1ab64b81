import { type NamedText, option, says } from '../../base/named-text.js';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';

/**
 * Why a model's own head cannot draft with these options; null: it can. It runs alongside the model as a
 * draft model does, over rows that the native executor alone hands over.
 */
export function headProblem(params: OptionalParams): NamedText | null {
  const { executor = 'auto', enableTrtOverlap, draftEnginePath, executorModule, panels = true } = params;
  const { tensorParallelSize = 1, pipelineParallelSize = 1 } = params;
  if (executorModule !== undefined || !['auto', 'native'].includes(executor))
    return 'mtp needs rows that the native executor alone hands from a model to its head; leave it out, or use that executor';
  if (enableTrtOverlap)
    return says`with ${option('enableTrtOverlap')} the model's head would run at the same time as the other micro-batch, on the same threads; leave one of them out`;
  if (draftEnginePath !== undefined)
    return says`${option('draftEnginePath')} drafts in the place of the model's head; leave one of them out`;
  if (tensorParallelSize * pipelineParallelSize > 1)
    return "ranks do not run a model's head, which mtp drafts with; leave it out, or run one rank";
  if (!panels)
    return says`without ${option('panels')} a GGUF is computed with as it lies, and the model's head is not read; leave one of them out`;
  return null;
}
