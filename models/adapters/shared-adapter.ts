import { type AdapterWeights, adapterOf } from './adapter-weights.js';
import { type LoraTensors, writeLoraTensors } from './lora-tensors.js';

/**
 * An adapter whose numbers lie in shared memory, as a request brings them: threads get it without a copy. It
 * must not be changed.
 */
export interface SharedAdapter extends AdapterWeights {
  /** A and B of each module-layer are parts of its rows. */
  tensors: LoraTensors;
}

/** A copy of the adapter in shared memory. */
export function sharedAdapter({ moduleLayers, baseModel }: AdapterWeights): SharedAdapter {
  const tensors = writeLoraTensors({ moduleLayers }, (length) => {
    return new Float32Array(new SharedArrayBuffer(length * Float32Array.BYTES_PER_ELEMENT));
  });
  const [, width = 0] = tensors.weightsShape;
  const shared = moduleLayers.map(({ a, b, ...place }, row) => {
    const endOfA = row * width + a.length;
    return {
      ...place,
      a: tensors.weights.subarray(row * width, endOfA),
      b: tensors.weights.subarray(endOfA, endOfA + b.length),
    };
  });
  return { ...adapterOf(shared, baseModel), tensors };
}

/** Its tensors, if its numbers lie in shared memory. */
export function sharedTensorsOf(adapter: AdapterWeights): LoraTensors | undefined {
  return (adapter as Partial<SharedAdapter>).tensors;
}
