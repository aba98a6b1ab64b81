import { packElements } from '../../../callbacks/infer/byte-elements.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from '../infer-failure.js';
import { NUMBER_TYPES } from './number-types.js';
import { nextTurn } from './turns.js';

/** Texts in one output: each class of each row. */
const MAX_CLASSES = 8192;
/** Elements that are compared in one go. */
const SLICE = 2 ** 14;

/**
 * The classes with the largest values, as texts VALUE:INDEX or VALUE:INDEX:LABEL, the largest first. With a batch dimension they are those
 * of each row. Source: the classification extension of the protocol.
 * @param isBatched the first dimension is that of the batch @param labels of the indexes; empty: none
 * @throws InferError for a type that has no order, and for more classes than can be returned
 */
export async function classified(
  tensor: InferTensor,
  count: number,
  isBatched: boolean,
  labels: readonly string[],
  signal?: AbortSignal,
): Promise<InferTensor> {
  const { name, datatype, shape, data } = tensor;
  const type = NUMBER_TYPES[datatype];
  if (type === undefined || datatype === 'BOOL') {
    throw malformed(`class result not available for output due to unsupported type '${datatype}'`);
  }
  const rows = isBatched ? (shape[0] ?? 1) : 1;
  const classes = rows === 0 ? 0 : Math.floor(data.length / type.bytes / rows);
  const wanted = Math.min(count, classes);
  if (rows * wanted > MAX_CLASSES) {
    throw malformed(
      `output '${name}' would have ${rows * wanted} classes in ${rows} rows; at most ${MAX_CLASSES} are told`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const texts: string[] = [];
  // A value that enters a heap of `wanted` values takes as many comparisons as the heap is deep.
  const step = Math.ceil(SLICE / Math.log2(wanted + 2));
  let compared = 0;
  for (let row = 0; row < rows; row++) {
    const top = new Top(wanted);
    for (let i = 0; i < classes; i++) {
      top.offer({ index: i, value: type.read(view, type.bytes * (row * classes + i)) });
      if (++compared % step === 0) await nextTurn(signal);
    }
    for (const { index, value } of top.inOrder()) {
      const label = labels[index] === undefined || labels[index] === '' ? '' : `:${labels[index]}`;
      texts.push(`${valueText(value, type.isFloat)}:${index}${label}`);
    }
  }
  return { name, datatype: 'BYTES', shape: isBatched ? [rows, wanted] : [wanted], data: packElements(texts) };
}

interface Class {
  index: number;
  value: number | bigint;
}

/** The largest of a number of classes, of equals those that come first; NaN is smaller than all. A heap, the smallest on top. */
class Top {
  readonly #most: number;
  readonly #heap: Class[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  offer(one: Class): void {
    const heap = this.#heap;
    if (heap.length < this.#most) {
      heap.push(one);
      this.#rise(heap.length - 1);
    } else if (this.#most > 0 && isBefore(one, heap[0]!)) {
      heap[0] = one;
      this.#sink();
    }
  }

  /** The largest first. */
  inOrder(): Class[] {
    return this.#heap.sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
  }

  #rise(from: number): void {
    for (let i = from; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!isBefore(this.#heap[parent]!, this.#heap[i]!)) return;
      this.#swap(i, parent);
      i = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let i = 0; ; ) {
      let last = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && isBefore(heap[last]!, heap[child]!)) last = child;
      }
      if (last === i) return;
      this.#swap(i, last);
      i = last;
    }
  }
}

function isBefore(a: Class, b: Class): boolean {
  if (a.value > b.value) return true;
  if (a.value < b.value) return false;
  const [isNoNumber, isOtherNone] = [Number.isNaN(a.value), Number.isNaN(b.value)];
  return isNoNumber === isOtherNone ? a.index < b.index : isOtherNone;
}

/** Floats have six digits after the point, as C writes them. */
function valueText(value: number | bigint, isFloat: boolean): string {
  if (typeof value === 'bigint' || !isFloat) return String(value);
  if (Number.isNaN(value)) return 'nan';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const size = Math.abs(value);
  if (size === Number.POSITIVE_INFINITY) return `${sign}inf`;
  // Beyond that JavaScript would write an exponent.
  return `${sign}${size < 1e21 ? size.toFixed(6) : `${BigInt(size)}.000000`}`;
}
