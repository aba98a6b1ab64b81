import { MAX_TIMER_MS } from '../../../base/int32.js';
import { ModelLoadError } from '../model-load-error.js';

/** Rejects when the signal is aborted, or the time is over; until it is stopped. */
export function gaveUp(signal: AbortSignal, limitMs: number, name: string) {
  let stop: () => void = () => {};
  const promise = new Promise<never>((_, reject) => {
    const onAbort = () => reject(signal.reason);
    const onTime = () => {
      const seconds = Math.round(limitMs / 1000);
      reject(new ModelLoadError('slow', `The model '${name}' was not loaded within ${seconds} s.`));
    };
    const timer = setTimeout(onTime, Math.min(limitMs, MAX_TIMER_MS));
    signal.addEventListener('abort', onAbort, { once: true });
    stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    };
    if (signal.aborted) onAbort();
  });
  promise.catch(() => {});
  return { promise, stop };
}

/** A short wait, which ends early where the signal is aborted. */
export function pause(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
  });
}
