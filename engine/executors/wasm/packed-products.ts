import type { PackedMatrix } from './heap.js';

/** The packed matrices of products, by weight and bias: a weight with two biases is packed with each of them. */
export class PackedProducts {
  readonly #byWeight = new Map<string, Map<string | null, PackedMatrix>>();

  /** @param bias null: the product has none */
  add(weight: string, bias: string | null, matrix: PackedMatrix): void {
    const byBias = this.#byWeight.get(weight) ?? new Map<string | null, PackedMatrix>();
    this.#byWeight.set(weight, byBias.set(bias, matrix));
  }

  has(weight: string, bias: string | null): boolean {
    return this.#byWeight.get(weight)?.has(bias) ?? false;
  }

  of(weight: string, bias: string | null = null): PackedMatrix {
    const matrix = this.#byWeight.get(weight)?.get(bias);
    if (matrix === undefined) throw new Error(`${weight} has not been packed with the bias ${bias}.`);
    return matrix;
  }
}
