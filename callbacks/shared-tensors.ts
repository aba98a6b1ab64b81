import type { Tensor } from './types.js';

/**
 * Tensors of lists that several requests have alike, each made once: the prompt of many answers to it, the biases and bad
 * words of many prompts. It goes by the identity of a list, so it is for requests that are submitted one after the other,
 * while nobody changes the list; nobody may write to a tensor of it.
 */
export class SharedTensors {
  readonly #made = new Map<object, Map<string, Tensor>>();

  /** The tensor that was made of `list` before, or what `make` gives. @param part which of several made of one list */
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

  /** Lets go of all of them, when the requests have been submitted. */
  clear(): void {
    this.#made.clear();
  }
}
