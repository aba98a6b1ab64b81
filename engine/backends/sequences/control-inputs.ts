import { packElements } from '../../../callbacks/infer/byte-elements.js';
import { datatypeOf } from '../../../callbacks/infer/datatypes.js';
import type { InferSequence, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { DataType, SequenceBatching } from '../../../models/repository/model-config.js';
import { type ControlTensor, controlTensors } from '../../../models/repository/sequence-tensors.js';

/**
 * Inputs that inform a model of the sequences in its batch, an element for each row:
 *
 *   row      slot 0: A, its first request    slot 1: empty    slot 2: B, its last request
 *   START    1                               0                0
 *   END      0                               0                1
 *   READY    1                               0                1
 *   CORRID   A                               0                B
 *
 * 0 and 1 are the two values that the configuration gives, in their type. A row's element has the shape [1, 1], or [1] where the model
 * takes no batches.
 */
export class ControlInputs {
  readonly #controls: readonly ControlTensor[];
  readonly #shape: readonly number[];

  constructor(batching: SequenceBatching, isBatched: boolean) {
    this.#controls = controlTensors(batching);
    this.#shape = isBatched ? [1, 1] : [1];
  }

  get names(): readonly string[] {
    return this.#controls.map(({ name }) => name);
  }

  /** The model wants to know which rows are empty. */
  get hasReady(): boolean {
    return this.#controls.some(({ kind }) => kind === 'CONTROL_SEQUENCE_READY');
  }

  /** The elements of a row. @param sequence null: the row is empty */
  of(sequence: InferSequence | null): InferTensor[] {
    return this.#controls.map(({ name, kind, dataType, values }) => {
      const data =
        values === null
          ? bytesOfId(sequence?.id ?? null, dataType)
          : bytesOfFlag(values[isSo(kind, sequence) ? 1 : 0], dataType);
      return { name, datatype: datatypeOf(dataType), shape: this.#shape, data };
    });
  }
}

function isSo(kind: ControlTensor['kind'], sequence: InferSequence | null): boolean {
  if (sequence === null) return false;
  if (kind === 'CONTROL_SEQUENCE_START') return sequence.start;
  return kind === 'CONTROL_SEQUENCE_END' ? sequence.end : true;
}

function bytesOfFlag(value: number, type: DataType): Uint8Array {
  if (type === 'TYPE_BOOL') return Uint8Array.of(value);
  return new Uint8Array(type === 'TYPE_INT32' ? Int32Array.of(value).buffer : Float32Array.of(value).buffer);
}

/** An id as a number of its type, of which 32-bit types hold the lower half, or as a text. */
function bytesOfId(id: InferSequence['id'] | null, type: DataType): Uint8Array {
  if (type === 'TYPE_STRING') return packElements([id === null ? '' : String(id)]);
  const bytes = new Uint8Array(BigUint64Array.of(typeof id === 'bigint' ? id : 0n).buffer);
  return type === 'TYPE_UINT64' || type === 'TYPE_INT64' ? bytes : bytes.slice(0, 4);
}
