import { packElements } from '../../../callbacks/infer/byte-elements.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from './malformed.js';
import { NUMBER_TYPES } from './number-types.js';
import { nextTurn } from './turns.js';

/** Texts in one output: each class of each row. */
const MOST_CLASSES = 8192;
/** Elements that are compared in one go. */
const SLICE = 2 ** 14;

/**
 * The classes with the largest values, as texts VALUE:INDEX or VALUE:INDEX:LABEL, the largest first. With a batch dimension they are those
 * of each row. Source: the classification extension of the protocol.
 * @param isBatched the first dimension is that of the batch @param labels of the indexes; empty: none
 * @throws InferError for a type that has no order, and for more classes than are told
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
  if (rows * wanted > MOST_CLASSES) {
    throw malformed(
      `output '${name}' would have ${rows * wanted} classes in ${rows} rows; at most ${MOST_CLASSES} are told`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const texts: string[] = [];
  let compared = 0;
  for (let row = 0; row < rows; row++) {
    const at = (i: number) => type.read(view, type.bytes * (row * classes + i));
    const top = new Top(wanted, at);
    for (let i = 0; i < classes; i++) {
      top.offer(i);
      if (++compared % SLICE === 0) await nextTurn(signal);
    }
    for (const i of top.inOrder()) {
      const label = labels[i] === undefined || labels[i] === '' ? '' : `:${labels[i]}`;
      texts.push(`${valueText(at(i), type.isFloat)}:${i}${label}`);
    }
  }
  return { name, datatype: 'BYTES', shape: isBatched ? [rows, wanted] : [wanted], data: packElements(texts) };
}

/** The largest of a number of values, of equals those that come first; NaN is smaller than all. A heap, the smallest on top. */
class Top {
  readonly #most: number;
  readonly #at: (i: number) => number | bigint;
  readonly #heap: number[] = [];

  constructor(most: number, at: (i: number) => number | bigint) {
    this.#most = most;
    this.#at = at;
  }

  offer(i: number): void {
    const heap = this.#heap;
    if (heap.length < this.#most) {
      heap.push(i);
      this.#rise(heap.length - 1);
    } else if (this.#most > 0 && this.#isBefore(i, heap[0]!)) {
      heap[0] = i;
      this.#sink();
    }
  }

  /** The largest first. */
  inOrder(): number[] {
    return this.#heap.sort((a, b) => (this.#isBefore(a, b) ? -1 : 1));
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#at(a), this.#at(b)];
    if (one > other) return true;
    if (one < other) return false;
    const [isNoNumber, isOtherNone] = [Number.isNaN(one), Number.isNaN(other)];
    return isNoNumber === isOtherNone ? a < b : isOtherNone;
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
  }

  #rise(from: number): void {
    for (let i = from; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (!this.#isBefore(this.#heap[parent]!, this.#heap[i]!)) return;
      this.#swap(i, parent);
      i = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let i = 0; ; ) {
      let last = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && this.#isBefore(heap[last]!, heap[child]!)) last = child;
      }
      if (last === i) return;
      this.#swap(i, last);
      i = last;
    }
  }
}

/** Floats have six digits behind the point, as C writes them. */
function valueText(value: number | bigint, isFloat: boolean): string {
  if (typeof value === 'bigint' || !isFloat) return String(value);
  if (Number.isNaN(value)) return 'nan';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const size = Math.abs(value);
  if (size === Number.POSITIVE_INFINITY) return `${sign}inf`;
  // Beyond that JavaScript would write an exponent.
  return `${sign}${size < 1e21 ? size.toFixed(6) : `${BigInt(size)}.000000`}`;
}
