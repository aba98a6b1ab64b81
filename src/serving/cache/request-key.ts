import { createHash } from 'node:crypto';
import type { InferParameters, InferRequest } from '../../../callbacks/infer/infer-types.js';

/**
 * A text that two requests share only if they have to be answered alike: inputs with names, types, shapes and elements, the outputs that
 * are wanted, and the parameters where the model reads them; not the id, the priority and the time in the queue. Orders do not matter.
 *
 * Triton's key has neither shapes nor outputs nor parameters, so that it answers such requests with one another's outputs.
 * @param owner of the model: no two models that are loaded have the same
 */
export function requestKey(
  owner: number,
  { inputs, outputs, parameters }: Pick<InferRequest, 'inputs' | 'outputs' | 'parameters'>,
  readsParameters: boolean,
): string {
  const sorted = [...inputs].sort((a, b) => (a.name < b.name ? -1 : 1));
  const hash = createHash('sha256');
  const head = [
    owner,
    sorted.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.length]),
    outputs === null ? null : [...new Set(outputs)].sort(),
    readsParameters ? valuesOf(parameters) : null,
  ];
  hash.update(JSON.stringify(head));
  for (const { data } of sorted) hash.update(data);
  return hash.digest('base64');
}

/** Parameters by name, each with its type: 1 and '1' differ, as 1 and true. */
function valuesOf(parameters: InferParameters): unknown[] {
  return Object.entries(parameters)
    .map(([name, value]) => [name, typeof value, String(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
