import type { Hono } from 'hono';
import { isOfProtocol } from '../kserve/errors.js';
import type { AppEnv } from '../web/app-env.js';
import { ApiError } from '../web/errors.js';
import type { ServerContext, ServerRoute } from './server-context.js';

/** Adds the routes to the app, and after them the refusal of other methods of their paths. */
export function mountRoutes(app: Hono<AppEnv>, context: ServerContext, routes: readonly ServerRoute[]): void {
  const allowed = new Map<string, string[]>();
  for (const route of routes) {
    app.on(route.method.toUpperCase(), route.pattern, (c) => route.handle(c, context));
    const methods = allowed.get(route.pattern) ?? [];
    allowed.set(route.pattern, [...methods, route.method.toUpperCase()]);
  }
  for (const [pattern, methods] of allowed) {
    app.all(pattern, (c) => {
      const message = isOfProtocol(c.req.path)
        ? 'Method Not Allowed'
        : `${c.req.path} takes ${methods.join(' or ')}, not ${c.req.method}.`;
      const headers = { allow: methods.join(', ') };
      throw new ApiError(405, message, { code: 'method_not_allowed', headers });
    });
  }
}

/**
 * Makes a function from a path to its route's name in the metrics, whatever the method. Unknown paths share one name,
 * or clients could fill the metrics with names.
 */
export function handlerNames(routes: readonly ServerRoute[]): (path: string) => string {
  const exact = new Set(routes.map(({ path }) => path));
  const withParameters = routes.filter(({ path }) => path.includes('{'));
  const patterns = withParameters.map(({ path, pattern }) => [path, expression(pattern)] as const);
  return (path) => {
    if (exact.has(path)) return path;
    return patterns.find(([, regExp]) => regExp.test(path))?.[0] ?? 'unmatched';
  };
}

/** Makes a function that is true for paths without an API key. */
export function openPaths(routes: readonly ServerRoute[]): (path: string) => boolean {
  const handlerOf = handlerNames(routes);
  const open = new Set(routes.filter((route) => route.open).map(({ path }) => path));
  return (path) => open.has(handlerOf(path));
}

/** Makes a function that is true for requests whose route reads the body itself. */
export function streamedRoutes(routes: readonly ServerRoute[]): (method: string, path: string) => boolean {
  const streamed = routes.filter((route) => route.streamsBody);
  return (method, path) =>
    streamed.some((route) => route.path === path && route.method.toUpperCase() === method);
}

/** Regular expression of a pattern such as `/v1/models/:id{.+}`. */
function expression(pattern: string): RegExp {
  const segments = pattern.split('/').map((segment) => {
    const parameter = /^:\w+(?:\{(.+)\})?$/.exec(segment);
    return parameter === null ? segment.replaceAll(/[^\w-]/g, '\\$&') : (parameter[1] ?? '[^/]+');
  });
  return new RegExp(`^${segments.join('/')}$`);
}

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
