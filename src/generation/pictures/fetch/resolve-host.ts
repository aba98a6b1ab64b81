import { Resolver } from 'node:dns/promises';
import { onAbort } from '../../../../base/on-abort.js';

/** The addresses of a host's name, of one version of IP. @throws where it has none, or the signal is aborted */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Error codes of a name that has no addresses of a version. */
const NONE = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * Asks the servers of names of this machine, for IPv4 first. Not the system's own way: that would take names of /etc/hosts and of search
 * domains, and a thread of the few that files are read with until a slow server has answered.
 */
export const resolveHost: ResolveHost = async (host, signal) => {
  const resolver = new Resolver();
  const forget = onAbort(signal, () => resolver.cancel());
  try {
    return await resolver.resolve4(host).catch((error: NodeJS.ErrnoException) => {
      if (!NONE.has(error.code ?? '')) throw error;
      return resolver.resolve6(host);
    });
  } finally {
    forget();
  }
};
