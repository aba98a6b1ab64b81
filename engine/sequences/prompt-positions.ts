import type { ImageSpan } from './request-spec.js';

/**
 * Positions by which RoPE turns the tokens of a sequence whose prompt has others than 0, 1, 2, ... Those of networks that turn by grids
 * are three: time, height and width. Those of a text are equal, and a picture stands at one time:
 *
 *   prompt   a  b  i  i  i  i  i  i  c  d        a picture of 2 rows and 3 columns
 *   time     0  1  2  2  2  2  2  2  5  6        what follows begins after the picture's longer side
 *   height   0  1  2  2  2  3  3  3  5  6
 *   width    0  1  2  3  4  2  3  4  5  6
 */
export class PromptPositions {
  readonly time: Int32Array;
  /** The same array as `time` where the network does not turn by grids. */
  readonly height: Int32Array;
  readonly width: Int32Array;
  /** Position of the first token after the prompt; the others count on from there. */
  readonly next: number;

  private constructor(time: Int32Array, height: Int32Array, width: Int32Array, next: number) {
    this.time = time;
    this.height = height;
    this.width = width;
    this.next = next;
  }

  /** @param ids position of each token of the prompt, at least one */
  static given(ids: Int32Array): PromptPositions {
    return new PromptPositions(ids, ids, ids, ids.at(-1)! + 1);
  }

  /** Positions of a prompt of `length` tokens with pictures, by ascending place, for a network that turns by grids. */
  static ofImages(images: readonly ImageSpan[], length: number): PromptPositions {
    const [time, height, width] = [new Int32Array(length), new Int32Array(length), new Int32Array(length)];
    let next = 0;
    let place = 0;
    const text = (end: number) => {
      for (; place < end; place++, next++) time[place] = height[place] = width[place] = next;
    };
    for (const { start, end, rows, columns } of images) {
      text(start);
      for (; place < end; place++) {
        time[place] = next;
        height[place] = next + Math.floor((place - start) / columns);
        width[place] = next + ((place - start) % columns);
      }
      next += Math.max(rows, columns);
    }
    text(length);
    return new PromptPositions(time, height, width, next);
  }

  /** True if some token's positions differ between the axes. */
  get hasGrids(): boolean {
    return this.height !== this.time;
  }

  /** One more than the greatest position of the prompt. */
  get end(): number {
    let most = this.next;
    for (const axis of new Set([this.time, this.height, this.width]))
      for (const position of axis) if (position >= most) most = position + 1;
    return most;
  }

  /** Position on one of the axes of the token at a place of the sequence, which may lie after the prompt. */
  at(axis: 'time' | 'height' | 'width', place: number): number {
    const positions = this[axis];
    return place < positions.length ? positions[place]! : this.next + place - positions.length;
  }
}
