import type { BuildProgress } from '../../engine/building/builder.js';

const BAR_WIDTH = 30;
/** Without a terminal a line is written for each such share of the work, in percent. */
const PLAIN_STEP_PERCENT = 25;

const PHASES: Readonly<Record<BuildProgress['phase'], string>> = {
  waiting: 'waiting for another process that builds this engine',
  reading: 'reading the model',
  converting: 'converting weights',
  summing: 'reading weights',
  finishing: 'writing the engine',
};

/** The output that progress is shown on. */
export interface ProgressOutput {
  isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Shows the progress of a build: one moving line on a terminal, a few plain lines elsewhere. */
export function showBuildProgress(output: ProgressOutput): (progress: BuildProgress) => void {
  return output.isTTY ? onTerminal(output) : asLines(output);
}

function percent({ done, total }: BuildProgress): number {
  return total === 0 ? 0 : Math.min(100, Math.floor((done / total) * 100));
}

const hasShare = ({ phase, total }: BuildProgress) =>
  (phase === 'converting' || phase === 'summing') && total > 0;

function onTerminal(output: ProgressOutput): (progress: BuildProgress) => void {
  return (progress) => {
    const { phase, total } = progress;
    let line = `skein: ${PHASES[phase]}`;
    if (hasShare(progress)) {
      const share = percent(progress);
      const filled = Math.round((share / 100) * BAR_WIDTH);
      const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
      line += ` ${bar} ${share} % of ${(total / 1e6).toFixed(0)} MB`;
    }
    // The cursor returns to the line's start; the rest of a longer line before is erased.
    output.write(`\r${line}\x1b[K${phase === 'finishing' ? '\n' : ''}`);
  };
}

function asLines(output: ProgressOutput): (progress: BuildProgress) => void {
  let last = '';
  return (progress) => {
    const { phase, total } = progress;
    const step = Math.floor(percent(progress) / PLAIN_STEP_PERCENT) * PLAIN_STEP_PERCENT;
    const share = hasShare(progress) ? `: ${step} % of ${(total / 1e6).toFixed(0)} MB` : '';
    const line = `skein: ${PHASES[phase]}${share}\n`;
    if (line !== last) output.write(line);
    last = line;
  };
}
