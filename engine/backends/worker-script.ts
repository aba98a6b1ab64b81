/** The module that the worker of an instance runs: a file beside this one, also where both are bundled. */
export const instanceWorkerScript = (): URL => new URL('./instance-worker.js', import.meta.url);
