import type { BufferPool } from '../../base/buffer-pool.js';
import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type {
  BatchCommand,
  PackedRequest,
  PackedSequence,
  PackedTensor,
} from '../../callbacks/infer/instance-messages.js';

/** Where an input begins: typed arrays want multiples of 8, and kernels like whole lines of a processor's cache. */
const ALIGNMENT = 64;

/** A request to be packed. */
export interface BatchMember {
  id: string;
  inputs: readonly InferTensor[];
  outputs: readonly string[] | null;
  parameters: InferParameters;
  batchSize: number;
  /** null: the model has no sequences. */
  packedSequence: PackedSequence | null;
  /** See PackedRequest. */
  traceparent?: string | undefined;
}

export interface PackedMembers {
  memory: ArrayBuffer;
  bytes: Uint8Array;
  requests: PackedRequest[];
}

/**
 * Copies the inputs of all requests into one buffer, each row once, so that the rows of one input lie one
 * after the other, in the order of the requests:
 *
 *   requests       a: INPUT0 [2 rows]  INPUT1 [2]        b: INPUT0 [1]  INPUT1 [1]
 *   bytes          | INPUT0: a0 a1 b0 |..| INPUT1: a0 a1 b0 |        each input at a multiple of 64
 *
 * So a backend that wants one tensor of the batch takes it as it lies (gather.ts), and one that wants requests takes theirs.
 */
export function packBatch(members: readonly BatchMember[], memory: BufferPool): PackedMembers {
  const sizes = new Map<string, number>();
  for (const { inputs } of members) {
    for (const { name, data } of inputs) sizes.set(name, (sizes.get(name) ?? 0) + data.length);
  }
  const offsets = new Map<string, number>();
  let end = 0;
  for (const [name, size] of sizes) {
    offsets.set(name, end);
    end = Math.ceil((end + size) / ALIGNMENT) * ALIGNMENT;
  }
  const buffer = memory.take(end);
  const bytes = new Uint8Array(buffer, 0, end);
  const requests = members.map((member): PackedRequest => {
    const { id, inputs, outputs, parameters, batchSize, packedSequence: sequence, traceparent } = member;
    const packed = inputs.map(({ name, datatype, shape, data }): PackedTensor => {
      const offset = offsets.get(name)!;
      bytes.set(data, offset);
      offsets.set(name, offset + data.length);
      return { name, datatype, shape, offset, length: data.length };
    });
    const traced = traceparent === undefined ? {} : { traceparent };
    return { id, inputs: packed, outputs, parameters, batchSize, sequence, ...traced };
  });
  return { memory: buffer, bytes, requests };
}

/** The inputs of a packed request; they lie in the batch's bytes. */
export function unpackInputs({ inputs }: PackedRequest, bytes: BatchCommand['bytes']): InferTensor[] {
  return inputs.map((tensor) => unpackTensor(tensor, bytes));
}

export function unpackTensor(
  { name, datatype, shape, offset, length }: PackedTensor,
  bytes: Uint8Array,
): InferTensor {
  return { name, datatype, shape, data: bytes.subarray(offset, offset + length) };
}
