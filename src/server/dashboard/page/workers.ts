/** What the page uses of Trusted Types, which not every browser has. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(input: string): string },
  ): { createScriptURL(input: string): string };
}

/** The page's workers: readers of what others have written, which may be ended at any time. */
const SCRIPTS = { pdf: 'dashboard/pdf-worker.js', code: 'dashboard/code-worker.js' } as const;

export type WorkerName = keyof typeof SCRIPTS;

const addressOf = (name: string) =>
  new URL(name === 'code' ? SCRIPTS.code : SCRIPTS.pdf, document.baseURI).href;

/**
 * The page's content policy allows one Trusted Types policy of this name, and this is it, made before anything else runs: it has these two addresses,
 * whatever it is asked for, so that no other script can ever be started.
 */
const policy = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('skein-worker', {
  createScriptURL: addressOf,
});

export function startWorker(name: WorkerName): Worker {
  return new Worker(policy?.createScriptURL(name) ?? addressOf(name), { type: 'module' });
}
