/** Words of a run in front of its tokens. */
const HEAD_WORDS = 6;
const FIRST_WORDS = 256;
/** 2^32, by which the number of a request is divided into two words. */
const WORD = 2 ** 32;

/** New tokens of one sequence, and nothing else: what nearly all pieces are. `index`: see Frame. */
export interface TokenRun {
  /** See WorkItem. */
  number: number;
  attempt: number;
  sequence: number;
  index: number;
  tokens: Int32Array;
}

/**
 * Gathers the runs of one message as numbers: no text is made of them, and no object kept.
 *
 *   | number, low | number, high | attempt | sequence | index | count | token 0 | token 1 ... | next run ...
 */
export class RunWriter {
  #words = new Int32Array(FIRST_WORDS);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  add(number: number, attempt: number, sequence: number, index: number, tokens: Int32Array): void {
    const at = this.#length;
    const end = at + HEAD_WORDS + tokens.length;
    if (end > this.#words.length) this.#grow(end);
    const words = this.#words;
    words[at] = (number % WORD) | 0;
    words[at + 1] = Math.floor(number / WORD);
    words[at + 2] = attempt;
    words[at + 3] = sequence;
    words[at + 4] = index;
    words[at + 5] = tokens.length;
    words.set(tokens, at + HEAD_WORDS);
    this.#length = end;
  }

  #grow(length: number): void {
    const before = this.#words;
    this.#words = new Int32Array(Math.max(length, 2 * before.length));
    this.#words.set(before);
  }

  /** All runs so far, in their order. */
  get words(): Int32Array {
    return this.#words.subarray(0, this.#length);
  }
}

/** Bytes of a run. */
export function runBytes({ length }: Int32Array): number {
  return (HEAD_WORDS + length) * Int32Array.BYTES_PER_ELEMENT;
}

/** True if the words are whole runs, with counts from 0 on. */
export function areRuns(words: Int32Array): boolean {
  let at = 0;
  while (at < words.length) {
    if (at + HEAD_WORDS > words.length) return false;
    for (let i = 1; i < HEAD_WORDS; i++) if (words[at + i]! < 0) return false;
    at += HEAD_WORDS + words[at + 5]!;
  }
  return at === words.length;
}

/** Reads runs, in their order. @param words areRuns */
export function* readRuns(words: Int32Array): Generator<TokenRun, void, undefined> {
  for (let at = 0; at < words.length; ) {
    const start = at + HEAD_WORDS;
    at = start + words[start - 1]!;
    yield {
      number: (words[start - 6]! >>> 0) + WORD * words[start - 5]!,
      attempt: words[start - 4]!,
      sequence: words[start - 3]!,
      index: words[start - 2]!,
      tokens: words.slice(start, at),
    };
  }
}
