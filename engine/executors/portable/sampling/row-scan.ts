/** Number of logits in a group; a group that lies below a bound as a whole is passed over. */
export const GROUP = 64;

/**
 * Results of one pass over a row of logits: its greatest one, whether all are numbers, and the greatest of each group.
 */
export class RowScan {
  /** Greatest logit of each group [ceil(vocabSize / GROUP)], ignoring NaN. */
  readonly groupMaxima: Float32Array;
  /** Greatest logit of the row; -Infinity if no logit is above it. */
  maximum = -Infinity;
  /** Lowest id among the greatest logits; -1 if a logit is NaN or Infinity, or none is above -Infinity. */
  best = -1;

  constructor(vocabSize: number) {
    this.groupMaxima = new Float32Array(Math.ceil(vocabSize / GROUP));
  }

  get isFinite(): boolean {
    return this.best >= 0;
  }

  scan(logits: Float32Array): void {
    const { groupMaxima } = this;
    const size = logits.length;
    let maximum = -Infinity;
    let group = -1;
    let isNumber = true;
    for (let begin = 0, index = 0; begin < size; begin += GROUP, index++) {
      const end = Math.min(begin + GROUP, size);
      let top = -Infinity;
      for (let i = begin; i < end; i++) {
        const logit = logits[i]!;
        if (logit > top) top = logit;
        else if (!(logit <= top)) isNumber = false;
      }
      groupMaxima[index] = top;
      if (top > maximum) {
        maximum = top;
        group = begin;
      }
    }
    this.maximum = maximum;
    this.best = isNumber && group >= 0 && maximum < Infinity ? logits.indexOf(maximum, group) : -1;
  }
}
