import { constants } from 'node:os';
import { SkeinError } from '../base/skein-error.js';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** A signal has ended what was asked for. Whoever asked knows why: the process says no more than the message, if any. */
export class InterruptedError extends SkeinError {
  override name = 'InterruptedError';
  override readonly code = 'SKEIN_INTERRUPTED';
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals, message = '') {
    super(message);
    this.exitCode = exitCodeOf(signal);
  }
}

/** What a process that a signal has ended ends with: 130 for SIGINT, 143 for SIGTERM. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export interface Interruption {
  /** Aborted by the first SIGINT or SIGTERM, with an InterruptedError. A second one ends the process where it stands. */
  signal: AbortSignal;
  /** The signals do again what they do without a listener. */
  release(): void;
}

/** @param message what the user is told; empty for nothing. */
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

/** Rejects with the signal's reason, beside something that knows nothing of signals. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
