import { option, says } from '../../base/named-text.js';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/** @throws ParameterError for what a model whose layers keep states cannot do: a state does not go back behind a rejected draft */
export function checkStatefulOptions({ speculate = 'none', draftEnginePath }: OptionalParams): void {
  const field = speculate !== 'none' ? 'speculate' : draftEnginePath !== undefined ? 'draftEnginePath' : null;
  if (field === null) return;
  throw new ParameterError(
    field,
    says`${option(field)} is refused: layers of this model keep a state of each sequence, which cannot go back where a draft is rejected; leave it out.`,
    'unsupported',
  );
}
