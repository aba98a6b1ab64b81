import type { Tensor } from './types.js';

/**
 * Tensors of lists that several requests share, each made once: the prompt of many answers, the biases and
 * bad words of many prompts. Lists are distinguished by identity, so this is for requests submitted one after
 * the other, while the lists do not change. A shared tensor must not be written to.
 */
export class SharedTensors {
  readonly #made = new Map<object, Map<string, Tensor>>();

  /**
   * The tensor made of `list` before, or a new one from `make`. @param part distinguishes several tensors
   * made of one list
   */
  of(list: object, make: () => Tensor, part = ''): Tensor {
    let parts = this.#made.get(list);
    if (parts === undefined) {
      parts = new Map();
      this.#made.set(list, parts);
    }
    let tensor = parts.get(part);
    if (tensor === undefined) {
      tensor = make();
      parts.set(part, tensor);
    }
    return tensor;
  }

  /** Drops all tensors, once the requests have been submitted. */
  clear(): void {
    this.#made.clear();
  }
}
