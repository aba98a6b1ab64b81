import { handlerNames } from './mount.js';
import type { ServerRoute } from './server-context.js';

/** Paths of other servers for routes that are here under another name: of Amazon's SageMaker, and SGLang's newer ones. */
const OTHER_PATHS: Readonly<Record<string, string>> = {
  '/ping': '/health',
  '/model_info': '/get_model_info',
  '/server_info': '/get_server_info',
};

/**
 * Makes a function from a path as clients write it to that of the route: without a slash at its end, with the /v1 that
 * some clients leave out, or by another server's name. A path that is a route's own, or no route's, stays.
 */
export function canonicalPaths(routes: readonly ServerRoute[]): (path: string) => string {
  const handlerOf = handlerNames(routes);
  const isKnown = (path: string) => handlerOf(path) !== 'unmatched';
  return (path) => {
    const short = path.endsWith('/') ? path.slice(0, -1) : path;
    const handler = handlerOf(path);
    // A parameter that takes slashes takes the one at the end too, where it is not meant.
    if (handler !== 'unmatched' && (handler === path || !isKnown(short))) return path;
    const other = Object.hasOwn(OTHER_PATHS, short) ? OTHER_PATHS[short]! : short;
    if (isKnown(other)) return other;
    return isKnown(`/v1${other}`) ? `/v1${other}` : path;
  };
}
