import type { PullProgress } from '../hub/pull.js';
import type { ProgressOutput } from './build-progress.js';

const BAR_WIDTH = 30;
const REDRAW_MS = 100;
/** Without a terminal a line is written for each such share, in percent. */
const PLAIN_STEP_PERCENT = 10;

/**
 * Shows a download: one moving line on a terminal, a few plain lines elsewhere. Shows nothing where no file was
 * missing.
 */
export function showPullProgress(output: ProgressOutput, clock = Date.now): (progress: PullProgress) => void {
  return output.isTTY ? onTerminal(output, clock) : asLines(output);
}

function megabytes(bytes: number): string {
  return bytes < 1e7 ? (bytes / 1e6).toFixed(1) : (bytes / 1e6).toFixed(0);
}

const percentOf = ({ done, total }: PullProgress) => (total === 0 ? 100 : Math.floor((100 * done) / total));

function onTerminal(output: ProgressOutput, clock: () => number): (progress: PullProgress) => void {
  const start = clock();
  let drawn = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const { id, path, done, total, kept } = progress;
    const now = clock();
    const isEnd = done === total;
    if (kept === total || (!isEnd && now - drawn < REDRAW_MS)) return;
    drawn = now;
    const filled = Math.round((percentOf(progress) / 100) * BAR_WIDTH);
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
    const rate = Math.max(0, done - kept) / Math.max(0.001, (now - start) / 1000);
    const left = rate > 0 ? (total - done) / rate : Number.POSITIVE_INFINITY;
    const rest = isEnd ? '' : `, ${duration(left)} left`;
    output.write(
      `\rskein: ${id} ${bar} ${megabytes(done)} of ${megabytes(total)} MB, ${megabytes(rate)} MB/s${rest}${isEnd ? '' : ` (${path})`}\x1b[K${isEnd ? '\n' : ''}`,
    );
  };
}

function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'unknown';
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function asLines(output: ProgressOutput): (progress: PullProgress) => void {
  let last = '';
  return (progress) => {
    const { id, total, kept } = progress;
    if (kept === total) return;
    const step = Math.floor(percentOf(progress) / PLAIN_STEP_PERCENT) * PLAIN_STEP_PERCENT;
    const line = `skein: downloading ${id}: ${step} % of ${megabytes(total)} MB\n`;
    if (line !== last) output.write(line);
    last = line;
  };
}
