/** URL of the module that a worker's process runs: a file beside this one, also where both are bundled. */
export const workerProcessScript = (): URL => new URL('./worker-process.js', import.meta.url);
