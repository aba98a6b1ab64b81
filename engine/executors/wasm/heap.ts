import { type BackendModule, openBackendModule } from './backend-module.js';
import { type Kernels, loadKernels } from './kernels.js';
import { requireMemory } from './web-assembly.js';

/** Bytes that a heap can grow to: the reach of 32-bit pointers, less the page that emscripten keeps. */
export const MAX_HEAP_BYTES = 2 ** 32 - 2 ** 16;

/** A product's matrix, packed. */
export interface PackedMatrix {
  /** Length of an input row, and of an output row. */
  readonly inputs: number;
  readonly outputs: number;
  /** Numbers of tensors; bias 0: none. */
  readonly tensor: number;
  readonly bias: number;
}

/**
 * A heap of tfjs-backend-wasm, with its products (XNNPACK) and the kernels of this package. Memory is taken once, and closing
 * the executor gives all of it back.
 *
 * The backend packs the matrix of a product when it first multiplies by it, and from then on finds it by its tensor's
 * number, so that the memory of the unpacked matrix is free for another.
 */
export class WasmHeap {
  readonly kernels: Kernels;
  /** Views of the whole heap, made once all memory has been taken: growing gives the heap another buffer. */
  floats = new Float32Array(0);
  ints = new Int32Array(0);
  readonly #module: BackendModule;
  readonly #multiply: (...values: unknown[]) => void;
  readonly #registerTensor: (...values: unknown[]) => void;
  readonly #disposeTensor: (...values: unknown[]) => void;
  readonly #tensorAt = new Map<number, number>();
  readonly #ofInput = new Int32Array(3);
  readonly #ofMatrix = new Int32Array(3);
  readonly #inputShape = new Uint8Array(this.#ofInput.buffer);
  readonly #matrixShape = new Uint8Array(this.#ofMatrix.buffer);
  #tensors = 0;

  private constructor(module: BackendModule, memory: object) {
    this.#module = module;
    this.kernels = loadKernels(memory);
    const number = 'number';
    const matrix = [number, 'array', number];
    this.#multiply = module.cwrap('_FusedMatMul', null, [...matrix, ...matrix, ...Array(7).fill(number)]);
    this.#registerTensor = module.cwrap('register_tensor', null, [number, number, number]);
    this.#disposeTensor = module.cwrap('dispose_data', null, [number]);
    this.#view();
  }

  /** @throws MemoryError if the process may not have enough address space */
  static async open(): Promise<WasmHeap> {
    requireMemory();
    const module = await openBackendModule();
    const { memory } = module.asm;
    if (memory === undefined) {
      throw new Error('The tfjs-backend-wasm of this build does not show its memory; that of 4.22 does.');
    }
    return new WasmHeap(module, memory);
  }

  /** Number of bytes that the heap has grown to. */
  get bytes(): number {
    return this.#module.HEAPU8.length;
  }

  /** Number of places that the backend knows as tensors. */
  get tensorsMade(): number {
    return this.#tensors;
  }

  /**
   * Takes `bytes` bytes of memory; null: there is not enough. Earlier views of the heap are invalid after
   * this.
   */
  take(bytes: number): number | null {
    const pointer = this.#module._malloc(bytes) >>> 0;
    this.#view();
    return pointer === 0 ? null : pointer;
  }

  giveBack(pointer: number): void {
    this.#module._free(pointer);
  }

  /** View of the floats that begin at a pointer. */
  floatsAt(pointer: number, length: number): Float32Array<ArrayBuffer> {
    return new Float32Array(this.#module.HEAPU8.buffer, pointer, length);
  }

  copy(target: number, source: number, bytes: number): void {
    this.#module.HEAPU8.copyWithin(target, source, source + bytes);
  }

  /**
   * Packs a matrix [inputs x outputs] at `values`, followed by a bias.
   *
   * @param values with room after matrix and bias for a row of inputs and one of outputs: packing comes with
   * a product
   */
  pack(values: number, inputs: number, outputs: number, hasBias: boolean): PackedMatrix {
    const behind = values + 4 * inputs * outputs;
    const tensor = this.#register(values, inputs * outputs);
    const bias = hasBias ? this.#register(behind, outputs) : 0;
    const matrix = { inputs, outputs, tensor, bias };
    const input = this.#register(behind + 4 * outputs, inputs);
    const output = this.#register(behind + 4 * (outputs + inputs), outputs);
    this.#product(input, matrix, 1, output);
    this.#disposeTensor(input);
    this.#disposeTensor(output);
    this.#view();
    return matrix;
  }

  /** Computes output = input x matrix + bias: [rows x outputs] = [rows x inputs] x [inputs x outputs]. */
  multiply(input: number, matrix: PackedMatrix, rows: number, output: number): void {
    this.#product(this.#tensorOf(input), matrix, rows, this.#tensorOf(output));
  }

  #product(
    input: number,
    { inputs, outputs, tensor, bias }: PackedMatrix,
    rows: number,
    output: number,
  ): void {
    this.#ofInput.set([1, rows, inputs]);
    this.#ofMatrix.set([1, inputs, outputs]);
    // The zeros mean: not transposed, no activation, no weights for one.
    this.#multiply(input, this.#inputShape, 3, tensor, this.#matrixShape, 3, 0, 0, 0, bias, 0, 0, output);
  }

  /** Number of the tensor for rows that begin at a pointer: one for each place of rows. */
  #tensorOf(pointer: number): number {
    let tensor = this.#tensorAt.get(pointer);
    if (tensor === undefined) {
      tensor = this.#register(pointer, 0);
      this.#tensorAt.set(pointer, tensor);
    }
    return tensor;
  }

  #register(pointer: number, size: number): number {
    this.#tensors++;
    this.#registerTensor(this.#tensors, size, pointer);
    return this.#tensors;
  }

  #view(): void {
    const { buffer } = this.#module.HEAPU8;
    this.floats = new Float32Array(buffer);
    this.ints = new Int32Array(buffer);
  }
}
