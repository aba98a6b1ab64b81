// @ts-check
/** @typedef {import('skein').VectorTransformer<number[], number[], number[]>} NumbersTransformer */

/**
 * The computation, in a process of its own: a batch takes hardly longer than one number.
 * @implements {NumbersTransformer}
 */
export default class Squares {
  /** @param {{ msPerFold: number }} options */
  constructor({ msPerFold }) {
    this.msPerFold = msPerFold;
  }

  /** @param {number[]} numbers */
  transform(numbers) {
    sleep(this.msPerFold * Math.log(numbers.length + 1));
    return numbers.map((number) => number * number);
  }
}

/** @param {number} ms */
function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
