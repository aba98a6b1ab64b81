import type { BatchPlan } from '../batch/plan-batch.js';
import type { BatchCounts } from '../batch/run-batch.js';
import type { ProgressOutput } from './build-progress.js';

const BAR_WIDTH = 30;
/** Least milliseconds between two updates of a terminal. */
const FRAME_MS = 100;
/** Without a terminal a line is written for each such share of the work, in percent. */
const PLAIN_STEP_PERCENT = 10;

export interface BatchProgress {
  show(counts: BatchCounts): void;
  /** Ends the display, with the last state in its line. */
  end(): void;
}

/** Shows the progress of a batch: one moving line on a terminal, a line for each tenth elsewhere. */
export function showBatchProgress(output: ProgressOutput, { total }: BatchPlan): BatchProgress {
  const started = performance.now();
  let last: BatchCounts | null = null;
  let lastMs = Number.NEGATIVE_INFINITY;
  let lastStep = 0;
  const line = (counts: BatchCounts) => lineOf(counts, total, (performance.now() - started) / 1000);
  const draw = (counts: BatchCounts) => output.write(`\r${line(counts)}\x1b[K`);
  const onTerminal = (counts: BatchCounts) => {
    last = counts;
    const now = performance.now();
    if (now - lastMs < FRAME_MS) return;
    lastMs = now;
    draw(counts);
  };
  const asLines = (counts: BatchCounts) => {
    const step = Math.floor(percentOf(counts, total) / PLAIN_STEP_PERCENT);
    if (step > lastStep) output.write(`${line(counts)}\n`);
    lastStep = step;
  };
  return {
    show: output.isTTY ? onTerminal : asLines,
    end() {
      if (!output.isTTY || last === null) return;
      draw(last);
      output.write('\n');
    },
  };
}

function percentOf({ completed, failed, skipped }: BatchCounts, total: number): number {
  return total === 0 ? 100 : Math.min(100, Math.floor(((completed + failed + skipped) / total) * 100));
}

function lineOf(counts: BatchCounts, total: number, seconds: number): string {
  const { completed, failed, skipped, usage } = counts;
  const filled = Math.round((percentOf(counts, total) / 100) * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const done = completed + failed + skipped;
  const bad = failed === 0 ? '' : `, ${failed} failed`;
  const now = completed + failed;
  const left = now === 0 ? '' : `, ${timeText(((total - done) * seconds) / now)} left`;
  return `skein: ${bar} ${done} of ${total}${bad}, ${Math.round(usage.completionTokens / Math.max(seconds, 0.001))} tokens/s${left}`;
}

function timeText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
