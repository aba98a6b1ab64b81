import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';

/** A step between begin and finish, with a copy of its arrays' content at the beginning. */
export class BegunStep {
  readonly batch: PackedBatch;
  readonly sampling: SamplingBatch;
  readonly output: SamplingOutput;
  readonly startMs = performance.now();
  /** Error that the forward threw, if it ran at the beginning. */
  error: unknown = null;
  readonly #before: Map<string, unknown>;

  constructor(batch: PackedBatch, sampling: SamplingBatch, output: SamplingOutput) {
    this.batch = batch;
    this.sampling = sampling;
    this.output = output;
    // Overwrites the results, so that a read before the end does not find them.
    output.status.fill(-1);
    output.tokens.fill(-1);
    this.#before = this.#contents();
    for (const [field, value] of this.#before) {
      if (ArrayBuffer.isView(value)) this.#before.set(field, bytesOf(value).slice());
    }
  }

  /** Name of a field that has changed since the beginning, or null. */
  whatWasTouched(): string | null {
    const now = this.#contents();
    for (const [field, value] of this.#before) {
      const found = now.get(field);
      const isSame =
        ArrayBuffer.isView(value) && ArrayBuffer.isView(found)
          ? Buffer.compare(bytesOf(value), bytesOf(found)) === 0
          : value === found;
      if (!isSame) return field;
    }
    return null;
  }

  /** Content of the arrays. RoPE frequencies are left out, since unused rows may be given to new requests meanwhile. */
  #contents(): Map<string, unknown> {
    const { ropeFrequencies: _, ropeScales: __, returnedRows: ___, ...batch } = fieldsOf(this.batch);
    const all = { ...batch, ...fieldsOf(this.sampling), ...fieldsOf(this.output) };
    return new Map(Object.entries(all));
  }
}

/** Fields of an object that are numbers or arrays, also those with getters. */
function fieldsOf(object: object): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(object));
  for (const field of [...Object.keys(object), ...inherited]) {
    const value = (object as Record<string, unknown>)[field];
    if (typeof value === 'number' || ArrayBuffer.isView(value)) fields[field] = value;
  }
  return fields;
}

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
