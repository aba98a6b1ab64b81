/** What the page uses of Trusted Types, which not every browser has. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(): string },
  ): { createScriptURL(input: string): string };
}

const SCRIPT = 'dashboard/pdf-worker.js';

/**
 * The page's content policy allows one Trusted Types policy of this name, and this is it, made before anything else runs: it has one address, whatever it
 * is asked for, so that no other script can ever be started.
 */
const policy = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy(
  'skein-pdf-worker',
  {
    createScriptURL: () => new URL(SCRIPT, document.baseURI).href,
  },
);

/** Starts the worker that reads PDF files. */
export function startPdfWorker(): Worker {
  return new Worker(policy?.createScriptURL('') ?? new URL(SCRIPT, document.baseURI), { type: 'module' });
}
