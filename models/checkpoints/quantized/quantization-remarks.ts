import type { TensorLocation } from '../checkpoint.js';
import { type Kept, keptNumbers } from './quantized-blocks.js';

const TEXTS: Readonly<Record<Kept, string>> = {
  exact: 'keep the numbers of the file',
  scales:
    'keep the numbers of the file but for their scales, which are rounded to half precision by at most 1/2048',
  bf16: 'are rounded to bf16, by at most 1/256 of each weight',
  int8: 'are rounded once more, to 8 bits with a scale for 32 weights',
};

/** A sentence on what becomes of a quantised model's numbers, unless --weights asks for another precision. */
export function quantizationRemark(label: string, tensors: Iterable<TensorLocation>): string {
  const counts = new Map<Kept, number>();
  for (const tensor of tensors) {
    if (tensor.quantized === undefined) continue;
    const kept = keptNumbers(tensor, tensor.quantized);
    counts.set(kept, (counts.get(kept) ?? 0) + 1);
  }
  const parts = [...counts].map(
    ([kept, count], i) => `${count}${i === 0 ? ' of the matrices' : ''} ${TEXTS[kept]}`,
  );
  return `Weights quantised as ${label}: ${parts.join(', ')}.`;
}
