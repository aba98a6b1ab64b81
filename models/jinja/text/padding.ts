import type { Rendering } from '../rendering.js';
import { lengthOf } from './code-points.js';

export interface Padding {
  /** Side of the text. */
  side: '<' | '>' | '^';
  /** Characters of text and padding together. */
  width: number;
  fill: string;
}

/** A text in a field. With an odd rest, str.center has more on the left where the width is odd. */
export function padded(text: string, { side, width, fill }: Padding, run: Rendering): string {
  const rest = width - lengthOf(text);
  if (rest <= 0) return text;
  run.make(text.length + rest * fill.length);
  const left = side === '<' ? 0 : side === '>' ? rest : Math.floor(rest / 2) + (rest & width & 1);
  return fill.repeat(left) + text + fill.repeat(rest - left);
}
