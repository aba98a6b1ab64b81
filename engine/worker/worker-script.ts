/** URL of the module that an engine's worker thread runs: a file beside this one, also where both are bundled. */
export const generationWorkerScript = (): URL => new URL('./generation-worker.js', import.meta.url);
