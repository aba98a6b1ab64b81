import { basename } from 'node:path';
import { skeinVersion } from '../../base/package-info.js';
import { InvalidRequestError } from '../generation/errors.js';
import type { ModelOptions } from '../serving/load-model.js';
import { LiveModels } from '../serving/model-directory.js';
import type { RunningModel } from '../serving/running-model.js';
import { servedModel } from '../serving/serve-model.js';
import { DEFAULT_MAX_LOG_PROBS } from '../serving/served-model.js';
import { ApiKeys } from './api-keys.js';
import { createApp } from './app.js';
import { Batches } from './batches/batches.js';
import { FileStore } from './files/file-store.js';
import { MemoryLedger } from './held-memory.js';
import { heldMemoryLimitBeside } from './held-memory-limit.js';
import { NO_METRICS } from './metrics/metrics.js';
import { DEFAULT_MAX_BODY_BYTES } from './read-json.js';
import { dashboardFileRoute, dashboardRoute } from './routes/dashboard.js';
import { docsFileRoute, docsRoute } from './routes/documentation.js';
import type { ServerLog } from './server-log.js';
import { ServerState } from './server-state.js';

/** Where the API is mounted. */
export interface FetchOptions {
  /** Path in front of the routes, such as /llm: /llm/v1/models is then /v1/models. Default: none. */
  basePath?: string | undefined;
}

const DEFAULT_MAX_QUEUED = 256;
/** Requests of batches at once: the others are for clients that wait. */
const BATCH_REQUESTS = 4;

/** Pages for browsers, whose addresses begin at the server's own root. */
const PAGES = [dashboardRoute, dashboardFileRoute, docsRoute, docsFileRoute];

/** The API of a model inside another program, which has the sockets, the keys and the log. */
export class ProgramApi {
  readonly #app: ReturnType<typeof createApp>;
  readonly #batches: Batches;

  constructor(loaded: RunningModel<'generator'>, options: ModelOptions) {
    const models = new LiveModels();
    models.add(
      servedModel(loaded, {
        id: loaded.info.name,
        aliases: [],
        fileName: basename(options.model),
        maxActiveRequests: options.maxActiveRequests,
        maxQueueSize: options.maxQueuedRequests ?? DEFAULT_MAX_QUEUED,
        maxLogProbs: DEFAULT_MAX_LOG_PROBS,
        defaultMaxTokens: undefined,
        toolCallParser: 'auto',
        reasoningParser: 'auto',
      }),
    );
    const files = new FileStore();
    const apiKeys = new ApiKeys([]);
    const ofBatches = { files, log: QUIET, apiKeys, maxRequests: BATCH_REQUESTS };
    this.#batches = new Batches({ ...ofBatches, maxLineBytes: DEFAULT_MAX_BODY_BYTES });
    this.#app = createApp({
      models,
      state: new ServerState(models),
      metrics: NO_METRICS,
      version: skeinVersion(),
      log: QUIET,
      apiKeys,
      ledger: new MemoryLedger({ limit: heldMemoryLimitBeside([loaded], DEFAULT_MAX_BODY_BYTES) }),
      files,
      batches: this.#batches,
      withoutRoutes: PAGES,
    });
    this.#batches.start();
  }

  /** Answers a request: a route of the API behind `basePath`. */
  async fetch(request: Request, options: FetchOptions): Promise<Response> {
    const { basePath = '' } = checkFetch(request, options);
    return this.#app.fetch(basePath === '' ? request : below(request, basePath));
  }

  close(): Promise<void> {
    return this.#batches.close();
  }
}

/** @returns the options @throws InvalidRequestError naming the argument that is wrong */
function checkFetch(request: unknown, options: unknown): FetchOptions {
  const { url, headers } = (request ?? {}) as Partial<Request>;
  if (typeof url !== 'string' || headers === undefined) {
    throw new InvalidRequestError('skein.fetch takes a Request, such as new Request(url, init).', 'request');
  }
  // Frameworks that mount it hand over values of their own as well.
  const { basePath } = (options ?? {}) as FetchOptions;
  if (basePath === undefined || typeof basePath === 'string') return { basePath };
  throw new InvalidRequestError(
    `basePath is a ${typeof basePath}; a path, such as /llm, is expected.`,
    'basePath',
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

/** The program sees what goes wrong in the answers; a failure of the server's own becomes a warning of the process. */
const QUIET: ServerLog = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (fields, message) => {
    const { err } = fields as { err?: unknown };
    const why = err instanceof Error ? `: ${err.message}` : '';
    process.emitWarning(`${message}${why}`, { type: 'SkeinWarning', code: 'SKEIN_API' });
  },
};
