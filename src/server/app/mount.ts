import type { Hono } from 'hono';
import { isOfProtocol } from '../kserve/errors.js';
import type { AppEnv } from '../web/app-env.js';
import { ApiError } from '../web/errors.js';
import type { ServerContext, ServerRoute } from './server-context.js';

/** Adds the routes to the app, and behind them the refusal of other methods of their paths. */
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
