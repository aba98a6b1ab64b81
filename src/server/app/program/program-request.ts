import { InvalidRequestError } from '../../../errors/request-errors.js';

/** What `fetch` takes first: a request, or an address, of which only path and query count here. */
export type FetchInput = Request | URL | string;

/** Where the API is mounted, and the request where the first argument is an address. */
export interface FetchOptions extends RequestInit {
  /** Path in front of the routes, such as /llm: /llm/v1/models is then /v1/models. Default: none. */
  basePath?: string | undefined;
}

/** Host of addresses that are only a path. */
const BASE = 'http://localhost';

/** The request that the arguments of a `fetch` describe, below `basePath`. @throws InvalidRequestError naming the argument that is wrong */
export function requestOf(input: unknown, options: unknown): Request {
  const { basePath = '', ...init } = checkOptions(options);
  const request = isRequest(input) ? withSignal(input, init.signal) : new Request(addressOf(input), init);
  return basePath === '' ? request : below(request, basePath);
}

function checkOptions(options: unknown): FetchOptions {
  const { basePath, ...init } = (options ?? {}) as FetchOptions;
  if (basePath === undefined || typeof basePath === 'string') return { ...init, basePath };
  throw new InvalidRequestError(
    `basePath is a ${typeof basePath}; a path, such as /llm, is expected.`,
    'basePath',
  );
}

/** Requests of other implementations of fetch are no instances of the global class. */
export function isRequest(input: unknown): input is Request {
  const { url, headers } = (input ?? {}) as Partial<Request>;
  return typeof url === 'string' && headers !== undefined;
}

/**
 * A request that a second signal aborts too. Nothing else of the second argument changes a request: frameworks that mount the
 * API hand over values of their own there.
 */
function withSignal(request: Request, signal: unknown): Request {
  return signal instanceof AbortSignal ? new Request(request, { signal }) : request;
}

function addressOf(input: unknown): URL {
  if (input instanceof URL) return input;
  if (typeof input === 'string' && URL.canParse(input, BASE)) return new URL(input, BASE);
  throw new InvalidRequestError(
    'skein.fetch takes what fetch takes: a Request, or an address such as /v1/models.',
    'request',
  );
}

/** The request as if the path in front of the routes were not there; one with another path stays, and finds no route. */
function below(request: Request, basePath: string): Request {
  const url = new URL(request.url);
  const base = `/${basePath.replace(/^\/+|\/+$/g, '')}`;
  if (url.pathname !== base && !url.pathname.startsWith(`${base}/`)) return request;
  url.pathname = url.pathname.slice(base.length) || '/';
  return new Request(url, request);
}
