/**
 * URL of the module that an encoder's worker thread runs: a file next to this one, also where both are
 * bundled.
 */
export const encoderWorkerScript = (): URL => new URL('./encoder-worker.js', import.meta.url);
