import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { BatchRow, InstanceRequest } from '../backend.js';
import type { ControlInputs } from './control-inputs.js';
import { zeroData } from './state-tensors.js';

/**
 * The rows of a batch in which each sequence has its own row: requests in theirs, and empty rows between them, whose inputs are zeros in
 * the sizes of those of the first request.
 * @param requests of which each is one row, in the order of their slots
 */
export function rowsOf(
  requests: readonly InstanceRequest[],
  count: number,
  controls: ControlInputs,
): BatchRow[] {
  const rows = Array<BatchRow | null>(count).fill(null);
  for (const request of requests) rows[request.sequence!.slot] = rowOf(request);
  const empty = rows.includes(null) ? emptyRow(requests[0]!.inputs, controls) : null;
  return rows.map((row) => row ?? empty!);
}

export function rowOf(request: InstanceRequest): BatchRow {
  return { request, inputs: request.inputs, batchSize: request.batchSize };
}

/** A row without a request, of the same sizes as another one. */
function emptyRow(like: readonly InferTensor[], controls: ControlInputs): BatchRow {
  const own = controls.of(null);
  const inputs = like.map(({ name, datatype, shape }) => {
    const control = own.find((one) => one.name === name);
    return control ?? { name, datatype, shape, data: zeroData(datatype, shape) };
  });
  return { request: null, inputs, batchSize: 1 };
}

/**
 * Rows whose states have other sizes cannot be one tensor: they are run one group after the other.
 *
 *   direct   A [1,3]  B [1,5]  -  C [1,3]     ->   A - - C    and    - B - -       each keeps its row
 *   oldest   A [1,3]  B [1,5]     C [1,3]     ->   A C        and    B
 */
export function byStateSizes(
  rows: readonly BatchRow[],
  stateNames: ReadonlySet<string>,
  { controls, keepsSlots }: { controls: ControlInputs; keepsSlots: boolean },
): readonly (readonly BatchRow[])[] {
  const groups = new Map<string, BatchRow[]>();
  for (const row of rows) {
    if (row.request === null) continue;
    const sizes = row.inputs.filter(({ name }) => stateNames.has(name)).map(({ shape }) => shape.join('x'));
    const key = sizes.join(';');
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  if (groups.size <= 1) return [rows];
  if (!keepsSlots) return [...groups.values()];
  return [...groups.values()].map((group) => {
    const empty = emptyRow(group[0]!.inputs, controls);
    return rows.map((row) => (group.includes(row) ? row : empty));
  });
}
