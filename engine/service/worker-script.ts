/** The module that a service's worker runs: a file beside this one, also where both are bundled. */
export const serviceWorkerScript = (): URL => new URL('./service-worker.js', import.meta.url);
