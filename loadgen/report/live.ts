import type { Progress } from '../coordinator/load-run.js';
import { BIN_MS } from '../worker/frames.js';
import { type Paint, rate } from './terminal.js';

const BARS = '▁▂▃▄▅▆▇█';
const PLOT_BINS = 60;

/** Block of lines that is drawn over itself while a run goes on. */
export class LiveView {
  readonly #out: NodeJS.WriteStream;
  readonly #paint: Paint;
  #lines = 0;

  constructor(out: NodeJS.WriteStream, paint: Paint) {
    this.#out = out;
    this.#paint = paint;
  }

  show(progress: Progress, label: string): void {
    const lines = liveLines(progress, label, this.#paint);
    this.clear();
    this.#out.write(`${lines.join('\n')}\n`);
    this.#lines = lines.length;
  }

  /** Removes the block, before lines that stay. */
  clear(): void {
    // The cursor goes to the block's first line, and all below is erased.
    if (this.#lines > 0) this.#out.write(`\u001b[${this.#lines}A\u001b[0J`);
    this.#lines = 0;
  }
}

function liveLines(
  { elapsedMs, dealt, settled, inFlight, waiting, metrics, timeline }: Progress,
  label: string,
  paint: Paint,
): string[] {
  const pieces = timeline.recent('pieces', PLOT_BINS, elapsedMs);
  const completed = timeline.recent('completed', PLOT_BINS, elapsedMs);
  const perSecond = (bins: readonly number[]) => {
    const last = bins.slice(-4000 / BIN_MS);
    return last.length === 0
      ? 0
      : (last.reduce((sum, count) => sum + count, 0) * 1000) / BIN_MS / last.length;
  };
  const failed = settled - metrics.answered;
  const ms = (value: number) => (Number.isNaN(value) ? '-' : `${value.toFixed(value < 100 ? 1 : 0)} ms`);
  const { ttft, itl, e2e } = metrics.histograms;
  return [
    `${paint('bold', label)}  ${(elapsedMs / 1000).toFixed(0)} s   ${settled} of ${dealt} dealt   ${inFlight} in flight` +
      (waiting > 0 ? paint('red', `   ${waiting} waiting in the client`) : '') +
      (failed > 0 ? paint('yellow', `   ${failed} failed`) : ''),
    `  pieces/s   ${rate(perSecond(pieces)).padStart(8)}  ${paint('cyan', sparkline(pieces))}`,
    `  requests/s ${rate(perSecond(completed)).padStart(8)}  ${paint('green', sparkline(completed))}`,
    `  TTFT ${ms(ttft.quantile(0.5))} / ${ms(ttft.quantile(0.99))}   ITL ${ms(itl.quantile(0.5))} / ${ms(itl.quantile(0.99))}   E2E ${ms(e2e.quantile(0.5))} / ${ms(e2e.quantile(0.99))}   (p50 / p99)`,
  ];
}

/** A bar for each value, relative to the greatest. */
export function sparkline(values: readonly number[]): string {
  const most = Math.max(1e-9, ...values);
  return values
    .map((value) => (value <= 0 ? ' ' : BARS[Math.min(7, Math.floor((8 * value) / most))]))
    .join('');
}
