import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../base/error-text.js';
import { countElements } from '../../../callbacks/infer/byte-elements.js';
import {
  BYTES_PER_ELEMENT,
  type Datatype,
  datatypeOf,
  elementsIn,
} from '../../../callbacks/infer/datatypes.js';
import type {
  ModelConfig,
  SequenceBatching,
  SequenceState,
} from '../../../models/repository/model-config.js';
import { fieldError, type WrittenConfig } from '../../../models/repository/written-config.js';
import { BackendError } from '../backend.js';

/** The folder of a model's folder in which files of initial states lie. */
const INITIAL_STATES = 'initial_state';

/** A state that a sequence has, as the model takes and gives it. */
export interface StateTensor {
  readonly inputName: string;
  readonly outputName: string;
  readonly datatype: Datatype;
  /** What an output has to have, the batch dimension first; -1: any size. */
  readonly dims: readonly number[];
  /** What the first request of a sequence is given: its sizes, all known, and its elements. */
  readonly initialShape: readonly number[];
  readonly initial: Uint8Array;
}

/**
 * The states of a checked configuration with what they begin with: zeros, a file, or where nothing is said zeros too, since nothing that was in memory
 * before may be seen; variable sizes are 1 then.
 * @throws BackendError for a file that cannot be read or is too short
 */
export function readStates(
  { max_batch_size: maxBatchSize, sequence_batching: batching }: ModelConfig,
  modelDirectory: string,
): Promise<StateTensor[]> {
  const rows = maxBatchSize > 0 ? [1] : [];
  return Promise.all(
    (batching?.state ?? []).map(async (state): Promise<StateTensor> => {
      const { input_name: inputName, output_name: outputName, dims, initial_state: initial } = state;
      const datatype = datatypeOf(state.data_type);
      const sizes = initial[0]?.dims ?? dims.map((size) => (size === -1 ? 1 : size));
      const file = initial[0]?.data_file;
      const shape = [...rows, ...sizes];
      const data =
        file === undefined
          ? zeroData(datatype, shape)
          : await readInitial(modelDirectory, file, datatype, shape);
      return {
        inputName,
        outputName,
        datatype,
        dims: [...rows, ...dims],
        initialShape: shape,
        initial: data,
      };
    }),
  );
}

async function readInitial(
  modelDirectory: string,
  filename: string,
  datatype: Datatype,
  shape: readonly number[],
): Promise<Uint8Array> {
  const path = join(modelDirectory, INITIAL_STATES, filename);
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new BackendError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  const elements = elementsIn(shape);
  const size = BYTES_PER_ELEMENT[datatype];
  if (size === null) {
    const found = countElements(bytes);
    if (found === elements) return Uint8Array.from(bytes);
    const has = found === null ? 'ends in the middle of a text' : `has ${found} texts`;
    throw new BackendError(`${path} ${has}; the initial state has ${elements}.`);
  }
  if (bytes.length < elements * size) throw new BackendError(tooShort(path, bytes.length, elements * size));
  // Further bytes are ignored, as in Triton.
  return Uint8Array.from(bytes.subarray(0, elements * size));
}

/**
 * Looks at the files and sizes of initial states before anything is started.
 * @param maxBytes that the states of an instance may take @throws ModelConfigError with the line of the field
 */
export async function checkInitialStates(
  { state: states }: SequenceBatching,
  modelDirectory: string,
  written: WrittenConfig,
  maxBytes: number,
): Promise<void> {
  let sum = 0;
  for (const [i, state] of states.entries()) {
    const path = ['sequence_batching', 'state', i];
    sum += bytesOf(state);
    if (sum > maxBytes) {
      throw fieldError(
        written,
        path,
        `makes the states of one sequence ${sum} bytes; max_state_bytes is ${maxBytes}.`,
      );
    }
    const file = state.initial_state[0]?.data_file;
    if (file === undefined) continue;
    const at = [...path, 'initial_state', 0, 'data_file'];
    const found = join(modelDirectory, INITIAL_STATES, file);
    const { size, isFile } = await fileAt(found);
    if (!isFile) throw fieldError(written, at, `is ${JSON.stringify(file)}; there is no file ${found}.`);
    if (size > maxBytes) throw fieldError(written, at, `has ${size} bytes; max_state_bytes is ${maxBytes}.`);
    if (state.data_type !== 'TYPE_STRING' && size < bytesOf(state))
      throw fieldError(written, at, `names ${tooShort(found, size, bytesOf(state))}`);
  }
}

function tooShort(path: string, bytes: number, needed: number): string {
  return `${path}, which has ${bytes} bytes; the initial state takes ${needed}.`;
}

/** Bytes with which a state begins; of texts, which have no size, the least. */
function bytesOf({ data_type: type, dims, initial_state: initial }: SequenceState): number {
  const sizes = initial[0]?.dims ?? dims.map((size) => (size === -1 ? 1 : size));
  return elementsIn(sizes) * (BYTES_PER_ELEMENT[datatypeOf(type)] ?? 4);
}

async function fileAt(path: string): Promise<{ size: number; isFile: boolean }> {
  try {
    const found = await stat(path);
    return { size: found.size, isFile: found.isFile() };
  } catch {
    return { size: 0, isFile: false };
  }
}

/** Bytes of the length of a text, all that an empty one has. */
const LENGTH_BYTES = 4;

/** Elements that are all 0, false, or empty texts. */
export function zeroData(datatype: Datatype, shape: readonly number[]): Uint8Array {
  return new Uint8Array(elementsIn(shape) * (BYTES_PER_ELEMENT[datatype] ?? LENGTH_BYTES));
}
