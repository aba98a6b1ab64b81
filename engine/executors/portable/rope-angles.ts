import type { PackedBatch } from '../../packed-call/packed-batch.js';

export interface RopeAngles {
  /** Cosines [numTokens x rotaryDim / 2], multiplied by the batch's factor. */
  cosine: Float32Array;
  sine: Float32Array;
}

export interface RopeChoice {
  rotaryDim: number;
  /**
   * Inverse frequencies of one of the plan's own tables [rotaryDim / 2], which have no factor; absent: those of the batch.
   */
  table?: readonly number[] | undefined;
  /** Axis of the position that each of the batch's frequencies turns by, see the plan's ropeAxes; absent: time. */
  axes?: readonly number[] | undefined;
  /**
   * Greatest position: with an attention window that has sinks, queries to be multiplied with keys of sinks rotate to
   * maxAttentionWindow - 1 at most. Absent: positions are not limited.
   */
  lastPosition?: number | undefined;
}

/**
 * Writes the angles of each token of a batch; layers with the same choice share them. As in the native executor, the
 * angle is rounded to float32 first; its cosine and sine are then exact to float32.
 */
export function writeRopeAngles(batch: PackedBatch, choice: RopeChoice, { cosine, sine }: RopeAngles): void {
  const { rotaryDim, table, axes, lastPosition = Infinity } = choice;
  const half = rotaryDim / 2;
  const frequencies = table === undefined ? batch.ropeFrequencies : Float32Array.from(table);
  for (let sequence = 0; sequence < batch.numSequences; sequence++) {
    const row = batch.ropeRows[sequence]!;
    const first = table === undefined ? row * half : 0;
    const scale = table === undefined ? batch.ropeScales[row]! : 1;
    for (let t = batch.queryStart[sequence]!; t < batch.queryStart[sequence + 1]!; t++) {
      for (let i = 0; i < half; i++) {
        const position = Math.min(positionOn(batch, t, axes?.[i] ?? 0), lastPosition);
        const angle = Math.fround(position * frequencies[first + i]!);
        cosine[t * half + i] = Math.fround(Math.cos(angle)) * scale;
        sine[t * half + i] = Math.fround(Math.sin(angle)) * scale;
      }
    }
  }
}

/** Position of token t in time (axis 0), height (1) or width (2). */
function positionOn({ positions, gridPositions }: PackedBatch, t: number, axis: number): number {
  return axis === 0 || !gridPositions ? positions[t]! : gridPositions[2 * t + axis - 1]!;
}
