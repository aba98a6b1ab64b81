import type { Automaton } from './automaton.js';

/**
 * Classes of bytes: bytes that lead to the same places from some states share a class; bytes that lead nowhere have
 * class 0.
 */
export interface ByteClasses {
  readonly classOf: Uint8Array;
  /** An example byte of each class. */
  readonly byteOf: readonly number[];
}

/** The bytes that lead out of a state, whatever their targets; states that differ only in targets share one signature. */
interface Signature {
  readonly id: number;
  /** Bytes at which a range of the state begins, or after which one ends. */
  readonly borders: readonly number[];
  /** 1 for each byte that one of the edges accepts. */
  readonly covers: Uint8Array;
  /** The state's edges that accept each byte, once asked for. */
  readonly waysAt: (readonly number[] | undefined)[];
}

/**
 * Finds the classes of bytes that differ in a set of states. Repetitions are written out, so very many states
 * accept the same bytes: these are examined only once.
 */
export class StateBytes {
  readonly #automaton: Automaton;
  readonly #signatures: Signature[] = [];
  readonly #byRanges = new Map<string, Signature>();
  /** The signature of each state, plus 1; 0: not computed yet. */
  readonly #ofState: Int32Array;
  readonly #classes = new Map<string, ByteClasses>();

  constructor(automaton: Automaton) {
    this.#automaton = automaton;
    this.#ofState = new Int32Array(automaton.numStates);
  }

  /** The classes of bytes that pairs (state, stack) tell apart. */
  classesOf(pairs: readonly number[]): ByteClasses {
    const ids = new Set<number>();
    let last = -1;
    for (let i = 0; i < pairs.length; i += 2) {
      const { id } = this.#signature(pairs[i]!);
      if (id !== last) ids.add(id);
      last = id;
    }
    const key = [...ids].sort((a, b) => a - b).join();
    let classes = this.#classes.get(key);
    if (classes === undefined) {
      classes = classesBetween([...ids].map((id) => this.#signatures[id]!));
      this.#classes.set(key, classes);
    }
    return classes;
  }

  /** Indices of the state's edges that accept the byte, counted from its first one in the automaton's table of bytes. */
  waysOf(state: number, byte: number): readonly number[] {
    const signature = this.#signature(state);
    let ways = signature.waysAt[byte];
    if (ways === undefined) {
      const { start, low, high } = this.#automaton.bytes;
      const first = start[state]!;
      const found: number[] = [];
      for (let way = first; way < start[state + 1]!; way++) {
        if (low[way]! <= byte && byte <= high[way]!) found.push(way - first);
      }
      ways = found;
      signature.waysAt[byte] = ways;
    }
    return ways;
  }

  #signature(state: number): Signature {
    const known = this.#ofState[state]!;
    if (known > 0) return this.#signatures[known - 1]!;
    const { start, low, high } = this.#automaton.bytes;
    const [from, to] = [start[state]!, start[state + 1]!];
    const key = `${low.subarray(from, to).join()}|${high.subarray(from, to).join()}`;
    let signature = this.#byRanges.get(key);
    if (signature === undefined) {
      const borders = new Set<number>();
      const covers = new Uint8Array(256);
      for (let way = from; way < to; way++) {
        borders.add(low[way]!).add(high[way]! + 1);
        covers.fill(1, low[way]!, high[way]! + 1);
      }
      signature = { id: this.#signatures.length, borders: [...borders], covers, waysAt: [] };
      this.#signatures.push(signature);
      this.#byRanges.set(key, signature);
    }
    this.#ofState[state] = signature.id + 1;
    return signature;
  }

  /** Bytes of memory that it takes, roughly. */
  get size(): number {
    return this.#ofState.byteLength + 400 * this.#classes.size + 2000 * this.#signatures.length;
  }
}

function classesBetween(signatures: readonly Signature[]): ByteClasses {
  const classOf = new Uint8Array(256);
  const byteOf = [-1];
  const borders = [...new Set(signatures.flatMap((one) => one.borders))].sort((a, b) => a - b);
  for (let i = 0; i + 1 < borders.length; i++) {
    const first = borders[i]!;
    if (signatures.every(({ covers }) => covers[first] === 0)) continue;
    classOf.fill(byteOf.length, first, borders[i + 1]!);
    byteOf.push(first);
  }
  return { classOf, byteOf };
}
