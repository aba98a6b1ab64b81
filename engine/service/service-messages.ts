import type { ErrorRecord } from '../../base/error-record.js';

/** Data that a service's worker is started with. */
export interface ServiceWorkerData {
  /** URL of the module whose default export is the class. */
  module: string;
  /** What the class is constructed with. */
  initArguments: unknown;
}

/** A batch, as the service's `preprocess` has made it. */
export interface ServiceCommand {
  type: 'batch';
  batch: unknown;
}

/** What became of a batch; batches are answered in order. */
export type ServiceMessage = { type: 'result'; result: unknown } | { type: 'thrown'; error: ErrorRecord };

/** The module that a service's worker runs: a file next to this one, also where both are bundled. */
export const serviceWorkerScript = (): URL => new URL('./service-worker.js', import.meta.url);
