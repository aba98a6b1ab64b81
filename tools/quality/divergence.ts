import { klDivergence, logSumExp } from '../support/goldens.js';
import { argmax } from '../support/sequence-driver.js';

/** Logits of every position of each window but the last: [window][position][vocabulary]. */
export type WindowLogits = Float32Array[][];

/** How far logits are from those of a reference. Divergences in nats, over the whole vocabulary. */
export interface Quality {
  perplexity: number;
  mean: number;
  percentile99: number;
  greatest: number;
  /** Share of the positions whose most probable token is the reference's. */
  same: number;
}

export function perplexity(windows: readonly number[][], logits: WindowLogits): number {
  const losses = logits.flatMap((window, w) =>
    window.map((row, position) => logSumExp(row) - row[windows[w]![position + 1]!]!),
  );
  return Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length);
}

export function qualityOf(
  windows: readonly number[][],
  reference: WindowLogits,
  found: WindowLogits,
): Quality {
  const exact = reference.flat();
  const rows = found.flat();
  const divergences = rows.map((row, i) => klDivergence(exact[i]!, row)).sort((a, b) => a - b);
  return {
    perplexity: perplexity(windows, found),
    mean: divergences.reduce((sum, value) => sum + value, 0) / divergences.length,
    percentile99: divergences[Math.floor(divergences.length * 0.99)]!,
    greatest: divergences.at(-1)!,
    same: rows.filter((row, i) => argmax(row) === argmax(exact[i]!)).length / rows.length,
  };
}
