import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { copiedBytes } from '../../../callbacks/infer/sent-tensors.js';
import { whyNotTensor } from '../check-outputs.js';
import type { StateTensor } from './state-tensors.js';

type Kept = Pick<InferTensor, 'shape' | 'data'>;

/**
 * Implicit states of the sequences of an instance: what a request gives as OUTPUT_STATE is INPUT_STATE of the next one. They lie here, in the
 * instance's worker, and cross to no other thread.
 *
 *   request 1        request 2        request 3, END
 *   in   initial     in   s1          in   s2
 *   out  s1 -keep-'  out  s2 -keep-'  out  s3        not kept
 *
 * A state that a request does not give stays as it was.
 */
export class SequenceStates {
  readonly #states: readonly StateTensor[];
  readonly #byOutput: ReadonlyMap<string, StateTensor>;
  readonly #maxBytes: number;
  /** By sequence, and by the name of the output. */
  readonly #kept = new Map<number, Map<string, Kept>>();
  #bytes = 0;

  /** @param maxBytes that all of them may take together */
  constructor(states: readonly StateTensor[], maxBytes: number) {
    this.#states = states;
    this.#byOutput = new Map(states.map((state) => [state.outputName, state]));
    this.#maxBytes = maxBytes;
  }

  /** Bytes of all states that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Sequences of which a state is kept. */
  get size(): number {
    return this.#kept.size;
  }

  hasOutput(name: string): boolean {
    return this.#byOutput.has(name);
  }

  /** What a request of the sequence is given. Their data may be written to. */
  inputs(sequence: number): InferTensor[] {
    const kept = this.#kept.get(sequence);
    return this.#states.map(({ inputName: name, outputName, datatype, initialShape, initial }) => {
      const { shape, data } = kept?.get(outputName) ?? { shape: initialShape, data: initial };
      return { name, datatype, shape, data: copiedBytes(data) };
    });
  }

  /**
   * Keeps states for the next request of the sequence, if there is one.
   * @returns why not, where one is wrong or there is no room; null: nothing is wrong
   */
  keep(sequence: number, outputs: readonly InferTensor[], isLast = false): string | null {
    let bytes = this.#bytes;
    const before = this.#kept.get(sequence);
    for (const output of outputs) {
      const { datatype, dims } = this.#byOutput.get(output.name)!;
      const wrong = whyNotTensor(output, datatype, dims);
      if (wrong !== null) return wrong;
      bytes += output.data.length - (before?.get(output.name)?.data.length ?? 0);
    }
    if (isLast) return null;
    if (bytes > this.#maxBytes) {
      return `the states of its sequences would take ${bytes} bytes in this instance; max_state_bytes is ${this.#maxBytes}`;
    }
    const kept = before ?? new Map<string, Kept>();
    // Copies: what a backend gives may be a part of something larger, or be written to again.
    for (const { name, shape, data } of outputs)
      kept.set(name, { shape: [...shape], data: copiedBytes(data) });
    if (kept.size > 0) this.#kept.set(sequence, kept);
    this.#bytes = bytes;
    return null;
  }

  /** The sequence is over. */
  forget(sequence: number): void {
    for (const { data } of this.#kept.get(sequence)?.values() ?? []) this.#bytes -= data.length;
    this.#kept.delete(sequence);
  }
}
