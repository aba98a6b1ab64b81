import type { ProgressOutput } from './build-progress.js';

const BAR_WIDTH = 30;
const LIT = 8;
const FRAME_MS = 100;
/** Milliseconds before progress is shown: faster loads show nothing. */
const QUIET_MS = { terminal: 400, plain: 2_000 };

export interface LoadProgress {
  /** Hides the bar while a download or a build shows its progress on the same line. */
  busy(): void;
  /** Removes the line. */
  end(): void;
}

/** Shows that models are being loaded: a moving bar on a terminal, one line elsewhere; nothing for a fast load. */
export function showLoadProgress(output: ProgressOutput, names: readonly string[]): LoadProgress {
  const text = `skein: loading ${names.join(', ')}`;
  const quietMs = output.isTTY ? QUIET_MS.terminal : QUIET_MS.plain;
  let begun = performance.now();
  let isDrawn = false;
  let isTold = false;
  const tick = () => {
    const elapsed = performance.now() - begun;
    if (elapsed < quietMs) return;
    if (output.isTTY) {
      isDrawn = true;
      output.write(`\r${text} ${bar(Math.floor(elapsed / FRAME_MS))} ${(elapsed / 1000).toFixed(0)} s\x1b[K`);
    } else if (!isTold) {
      isTold = true;
      output.write(`${text}\n`);
    }
  };
  const timer = setInterval(tick, FRAME_MS).unref();
  const clear = () => {
    if (isDrawn) output.write('\r\x1b[K');
    isDrawn = false;
  };
  return {
    busy() {
      clear();
      begun = performance.now();
    },
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

/** Draws the bar: the true progress is not known, so a lit part moves to and fro. */
function bar(step: number): string {
  const way = BAR_WIDTH - LIT;
  const at = way - Math.abs(way - (step % (2 * way)));
  return '░'.repeat(at) + '█'.repeat(LIT) + '░'.repeat(way - at);
}
