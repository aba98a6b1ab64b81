import { fromHalf, load16 } from '../../base/half.js';
import type { NetworkPlan } from '../../network/plan.js';
import { CheckpointError, type TensorLocation } from './checkpoint.js';
import { readExactly, withFile } from './file-reading.js';

const BYTES: Readonly<Record<string, number>> = { F32: 4, F16: 2, BF16: 2 };

/**
 * Checks the scores without values that heads of a network have: one that is no number would leave none in any answer.
 * @param tensors of the network, by their names
 * @throws CheckpointError for a score that is not finite, or of a type in which none is stored
 */
export function checkSinkLogits(
  { ops, weights }: NetworkPlan,
  tensors: ReadonlyMap<string, TensorLocation>,
): void {
  const names = new Set(ops.flatMap((op) => (op.op === 'attention' ? (op.sinkLogits ?? []) : [])));
  for (const { name, sources } of weights) {
    if (!names.has(name)) continue;
    for (const source of sources) checkTensor(tensors.get(source.name)!);
  }
}

function checkTensor(tensor: TensorLocation): void {
  const { file, name, type, byteLength, offset } = tensor;
  const size = BYTES[type];
  if (size === undefined) {
    throw new CheckpointError(`${file}: tensor ${name} should be F32, BF16 or F16, found ${type}.`);
  }
  const bytes = new Uint8Array(byteLength);
  withFile(file, (fd) => readExactly(file, fd, bytes, offset));
  for (let at = 0; at < byteLength; at += size) {
    const value = numberAt(bytes, at, type);
    if (Number.isFinite(value)) continue;
    throw new CheckpointError(
      `${file}: tensor ${name} should hold a finite number for each head, found ${value} for head ${at / size}.`,
    );
  }
}

function numberAt(bytes: Uint8Array, at: number, type: string): number {
  if (type === 'F16') return fromHalf(load16(bytes, at));
  const own = new Uint8Array(4);
  // The upper half of a float32 is a bf16.
  if (type === 'F32') own.set(bytes.subarray(at, at + 4));
  else own.set(bytes.subarray(at, at + 2), 2);
  return new DataView(own.buffer).getFloat32(0, true);
}
