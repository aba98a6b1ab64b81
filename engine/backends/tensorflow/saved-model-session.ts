import { elementsOf, packElements } from '../../../callbacks/infer/byte-elements.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { problemOfDevice } from '../../executors/tensorflow/device-problem.js';
import type { TensorFlow, TensorFlowBinding } from '../../executors/tensorflow/load-tensorflow.js';
import { BackendError } from '../backend.js';
import type { SavedSignature, SavedTensor } from './saved-model-file.js';
import type { ChosenSignature } from './signature.js';
import { inputType, outputType } from './tensorflow-types.js';

/**
 * Where data lies in the memory that TensorFlow is handed: not where its kernels want it, so that it copies the data at once. It would go
 * on using memory of this thread else, of a variable that was assigned an input for ever, and would give it back from a thread of its own.
 */
const MISALIGNMENT = 4;

const ADVICE = 'send less at once (max_batch_size), or run fewer instances';

/** A signature of a SavedModel that TensorFlow has loaded. */
export class SavedModelSession {
  readonly #binding: TensorFlowBinding;
  readonly #id: number;
  readonly #signature: SavedSignature;
  #lostBytes = 0;
  #lost: Error | null = null;

  /** @throws BackendError where TensorFlow does not load it */
  constructor(tensorflow: TensorFlow, folder: string, { tags, signature }: ChosenSignature) {
    this.#binding = tensorflow.backend().binding;
    this.#signature = signature;
    try {
      this.#id = this.#binding.loadSavedModel(folder, tags.join(','));
    } catch (error) {
      throw new BackendError(problemOfDevice(`${folder} cannot be loaded`, error, ADVICE).message, {
        cause: error,
      });
    }
  }

  /** Bytes of inputs that the library has kept for good: it does not free those of a run that failed. */
  get lostBytes(): number {
    return this.#lostBytes;
  }

  /** Inputs of the signature of one dimension. */
  get flatInputs(): ReadonlySet<string> {
    const flat = this.#signature.inputs.filter(({ shape }) => shape?.length === 1);
    return new Set(flat.map(({ name }) => name));
  }

  /** Why no further run can succeed; null: one may. */
  get lost(): Error | null {
    return this.#lost;
  }

  /**
   * Runs the signature. @param inputs of the signature, each once @param wanted names of outputs
   * @throws BackendError with what TensorFlow says
   */
  run(inputs: readonly InferTensor[], wanted: readonly string[]): InferTensor[] {
    const fed = inputs.map((input) => ({ input, saved: find(this.#signature.inputs, input.name) }));
    const fetched = wanted.map((name) => find(this.#signature.outputs, name));
    const ids: number[] = [];
    try {
      for (const { input, saved } of fed) ids.push(this.#makeTensor(input, saved));
      const results = this.#call(ids, fed, fetched);
      return results.map((result, i) => this.#take(result, fetched[i]!));
    } finally {
      for (const id of ids) this.#binding.deleteTensor(id);
    }
  }

  close(): void {
    this.#binding.deleteSavedModel(this.#id);
  }

  #call(
    ids: readonly number[],
    fed: readonly { input: InferTensor; saved: SavedTensor }[],
    fetched: readonly SavedTensor[],
  ) {
    const names = (tensors: readonly SavedTensor[]) => tensors.map(({ tensor }) => tensor!).join(',');
    try {
      return this.#binding.runSavedModel(this.#id, ids, names(fed.map(({ saved }) => saved)), names(fetched));
    } catch (error) {
      this.#lostBytes += fed.reduce((sum, { input }) => sum + input.data.length, 0);
      const { message, isLost } = problemOfDevice('TensorFlow failed', error, ADVICE);
      const problem = new BackendError(message, { cause: error });
      if (isLost) this.#lost = problem;
      throw problem;
    }
  }

  #makeTensor({ datatype, shape, data }: InferTensor, { dtype }: SavedTensor): number {
    const { binding } = inputType(dtype)!;
    const values = datatype === 'BYTES' ? elementsOf(data) : misaligned(datatype, data);
    return this.#binding.createTensor([...shape], this.#binding[binding], values);
  }

  /** The values of a result, which is freed. */
  #take({ id, shape }: { id: number; shape: number[] }, { name, dtype }: SavedTensor): InferTensor {
    const values = this.#binding.tensorDataSync(id);
    this.#binding.deleteTensor(id);
    const data = Array.isArray(values)
      ? packElements(values)
      : new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return { name, datatype: outputType(dtype)!, shape, data };
  }
}

function find(tensors: readonly SavedTensor[], name: string): SavedTensor {
  return tensors.find((one) => one.name === name)!;
}

/** A copy of the numbers as the binding takes them: int64 as pairs of int32. */
function misaligned(
  datatype: InferTensor['datatype'],
  data: Uint8Array,
): Float32Array | Int32Array | Uint8Array {
  const buffer = new ArrayBuffer(data.length + MISALIGNMENT);
  const bytes = new Uint8Array(buffer, MISALIGNMENT);
  bytes.set(data);
  if (datatype === 'BOOL' || datatype === 'UINT8') return bytes;
  const length = data.length / 4;
  return datatype === 'FP32'
    ? new Float32Array(buffer, MISALIGNMENT, length)
    : new Int32Array(buffer, MISALIGNMENT, length);
}
