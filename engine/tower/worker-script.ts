/**
 * URL of the module that a tower's worker thread runs: a file next to this one, also where both are bundled.
 */
export const towerWorkerScript = (): URL => new URL('./tower-worker.js', import.meta.url);
