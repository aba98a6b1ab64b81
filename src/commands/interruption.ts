import { constants } from 'node:os';
import { SkeinError } from '../../base/skein-error.js';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * An error for work that a signal ended. The user knows why, so the process prints no more than the message, if any.
 */
export class InterruptedError extends SkeinError {
  override name = 'InterruptedError';
  override readonly code = 'SKEIN_INTERRUPTED';
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals, message = '') {
    super(message);
    this.exitCode = exitCodeOf(signal);
  }
}

/** Exit code of a process that a signal ended: 130 for SIGINT, 143 for SIGTERM. */
function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export interface Interruption {
  /** Aborted by the first SIGINT or SIGTERM, with an InterruptedError. A second one ends the process at once. */
  signal: AbortSignal;
  /** Restores the default effect of the signals. */
  release(): void;
}

/** @param message text for the user; empty for none. */
export function listenForInterruption(message = ''): Interruption {
  const abort = new AbortController();
  const release = () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    release();
    abort.abort(new InterruptedError(signal, message));
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return { signal: abort.signal, release };
}

/** Rejects with the signal's reason, for racing against work that knows no signals. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
