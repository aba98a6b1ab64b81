import { type Context, Hono } from 'hono';
import { getPath } from 'hono/utils/url';
import type { Admit } from '../../../callbacks/infer/answer-tally.js';
import type { PoolWeights } from '../../../cluster/routing/pool-weights.js';
import type { PictureSources } from '../../generation/pictures/picture-files.js';
import { type PromptRule, promptRulesWithout } from '../../prompt-rules.js';
import type { UnknownFieldRule } from '../../schemas/field-rules.js';
import type { ModelDirectory } from '../../serving/model-directory.js';
import { borrowNamed, type ModelLife } from '../answering/model-life.js';
import { RecentPrompts } from '../answering/recent-prompts.js';
import { anthropicRequestIds, errorResponse, speaksAnthropic } from '../anthropic/errors.js';
import { Batches } from '../batches/batches.js';
import type { FeedOptions } from '../feeds/model-feed.js';
import { ModelFeeds } from '../feeds/model-feeds.js';
import { RepositoryFeed } from '../feeds/repository-feed.js';
import { FileStore } from '../files/file-store.js';
import { storedPictures } from '../files/stored-pictures.js';
import { errorAnswer, isOfProtocol, noteProtocolError, notFound } from '../kserve/errors.js';
import type { ToolServers } from '../mcp/tool-server.js';
import type { Metrics } from '../metrics/metrics.js';
import { isOfOllama, ollamaError } from '../ollama/errors.js';
import { resumeResponse } from '../openai/responses/accepted-task.js';
import type { KeptPlace } from '../openai/responses/kept-place.js';
import { MemoryPlace } from '../openai/responses/memory-place.js';
import { DEFAULT_STORE_LIMITS, ResponseStore } from '../openai/responses/response-store.js';
import type { ResponseTasks } from '../openai/responses/response-tasks.js';
import { traceHttp } from '../tracing/http-span.js';
import type { Tracing } from '../tracing/tracing.js';
import { ApiKeys } from '../web/access/api-keys.js';
import { requireApiKey } from '../web/access/auth.js';
import { type AllowedHosts, requireKnownHost } from '../web/access/host-check.js';
import {
  type AllowedOrigins,
  crossOrigin,
  LOOPBACK_ORIGINS,
  refuseOtherPages,
} from '../web/access/origin-check.js';
import type { AppEnv } from '../web/app-env.js';
import { bodyLimit } from '../web/bodies/body-limit.js';
import { bodyTooLarge, DEFAULT_MAX_BODY_BYTES } from '../web/bodies/read-json.js';
import { sendDirectAnswers } from '../web/direct-answer.js';
import { ApiError, clientLeft, shuttingDown, stillLoading, toApiError } from '../web/errors.js';
import { DEFAULT_EVENT_STREAM_OPTIONS, type EventStreamOptions } from '../web/event-stream.js';
import { MemoryLedger } from '../web/memory/held-memory.js';
import { holdMemory } from '../web/memory/hold-memory.js';
import { RequestMemory } from '../web/memory/request-memory.js';
import { tellParting } from '../web/prompt-parting.js';
import { limitExchange } from '../web/quotas/limit-exchange.js';
import { Quotas } from '../web/quotas/quotas.js';
import { NO_SNIFF } from '../web/raw-refusals.js';
import { requestIds } from '../web/request-ids.js';
import { RequestRegistry } from '../web/request-registry.js';
import type { LentModel } from '../web/route.js';
import type { LogControl, LogLevels, ServerLog } from '../web/server-log.js';
import type { ServerState } from '../web/server-state.js';
import { tellUnknownFields, tellWarnings } from '../web/warnings.js';
import { followRequests } from './follow-requests.js';
import { canonicalPaths, handlerNames, mountRoutes, openPaths, streamedRoutes } from './mount.js';
import { observeHttp } from './observe-http.js';
import { ALL_ROUTES, ROUTES } from './routes/index.js';
import { metricsRoute } from './routes/server.js';
import type { ServerContext, ServerRoute } from './server-context.js';

export interface AppOptions {
  models: ModelDirectory;
  state: ServerState;
  metrics: Metrics;
  version: string;
  log: ServerLog;
  /** Changes what is logged; default: nothing is changed by it. */
  logControl?: LogControl;
  /** Log with one line for each request; default: `log`. */
  accessLog?: ServerLog;
  /** Valid API keys; default: none are needed. */
  apiKeys?: ApiKeys;
  /** Web pages, besides the server's own, that may use the server; default: those of this machine. */
  corsOrigins?: AllowedOrigins;
  /** Names of the server besides those of the loopback; default: any. */
  allowedHosts?: AllowedHosts;
  /** Limits of the keys, and what they have taken; default: the app's own. */
  quotas?: Quotas;
  /** Registry of the requests that are being answered; default: one of the app's own. */
  requests?: RequestRegistry;
  maxBodyBytes?: number;
  /** Ledger of what all requests hold together; default: one without a limit. */
  ledger?: MemoryLedger;
  /** Most milliseconds of an answer; default: no limit. */
  requestTimeoutMs?: number | null;
  feed?: Partial<FeedOptions>;
  eventStream?: Partial<EventStreamOptions>;
  /** Serves the Open Inference Protocol; default: its routes are not there. */
  platform?: ServerContext['platform'];
  /** Traces requests; default: none are. */
  tracing?: Tracing | null;
  /** What happens to unknown fields of bodies; default: the answer reports them. */
  unknownFields?: UnknownFieldRule;
  /** Lets requests bring chat templates; default: they may not. */
  trustsTemplates?: boolean;
  /** Rules by which lines that change are left out of prompts; default: all. */
  promptRules?: ReadonlySet<PromptRule>;
  /** The way of a key, by its name, to pictures at addresses; default: none are fetched. */
  fetchedPictures?: ((key: string) => PictureSources['fetched']) | null;
  /** Servers of tools (MCP) that requests may use; default: there are none. */
  toolServers?: ToolServers | null;
  /** Folder of the LoRA adapters that clients may load; default: they may load none. */
  adapterFolder?: string | null;
  /** Models that are loaded on demand; default: there are none. */
  life?: ModelLife | null;
  /** How a gateway shares new requests among engines; default: the models are here. */
  poolWeights?: PoolWeights | null;
  /** Files of clients; default: in a temporary folder, which the creator of the app removes. */
  files?: FileStore;
  /** Responses and conversations that other servers share; default: they are kept in memory. */
  shared?: { place: KeptPlace; tasks: ResponseTasks } | undefined;
  /** Routes that are left out; default: none. */
  withoutRoutes?: readonly ServerRoute[];
  /** Batches of those files, which their creator starts; default: the app's own. */
  batches?: Batches;
}

/** Requests at once of an app's own batches. */
const BATCH_DEFAULTS = { maxRequests: 4 };

/** Makes the HTTP API as a Hono app, which knows nothing of sockets. */
export function createApp(options: AppOptions): Hono<AppEnv> {
  const { log, metrics, state, apiKeys = new ApiKeys([]), ledger = new MemoryLedger() } = options;
  const { corsOrigins = [LOOPBACK_ORIGINS], maxBodyBytes = DEFAULT_MAX_BODY_BYTES, tracing = null } = options;
  const without = new Set([...(options.withoutRoutes ?? []), ...(metrics.isOn ? [] : [metricsRoute])]);
  const routes = ALL_ROUTES.filter((route) => !without.has(route));
  const context = contextOf({ ...options, apiKeys, maxBodyBytes }, ledger, routes);
  const canonical = canonicalPaths(context.routes);
  const app = new Hono<AppEnv>({ getPath: (request) => canonical(getPath(request)) });
  const respondToError = (error: unknown, c: Context<AppEnv>): Response => {
    if (isOfProtocol(c.req.path) && !leftEarly(c)) return respondInProtocol(error, c);
    const apiError = leftEarly(c) ? clientLeft() : orStillLoading(toApiError(error), state);
    metrics.refused(apiError.apiCode);
    // A 503 is a refusal, whose reason /health reports, unless the system has refused something to the
    // server.
    if (apiError.status === 500 || apiError.cause !== undefined) {
      log.error(
        { err: apiError.cause ?? error, requestId: c.get('requestId'), path: c.req.path },
        'request failed',
      );
    }
    const requestId = c.get('requestId');
    if (isOfOllama(c.req.path)) return ollamaError(apiError);
    return speaksAnthropic(c) ? errorResponse(apiError, requestId) : apiError.response();
  };
  const respondInProtocol = (error: unknown, c: Context<AppEnv>): Response => {
    noteProtocolError(error, { metrics, log, requestId: c.get('requestId'), path: c.req.path });
    return errorAnswer(error);
  };
  app.onError(respondToError);
  app.notFound((c) => {
    if (isOfProtocol(c.req.path)) return respondInProtocol(notFound(), c);
    const message = `There is no ${c.req.method} ${c.req.path} on this server.`;
    return respondToError(new ApiError(404, message, { code: 'not_found' }), c);
  });

  app.use(sendDirectAnswers);
  app.use(requestIds);
  app.use(anthropicRequestIds);
  app.use(noSniff);
  app.use(tellWarnings);
  app.use(tellParting);
  if (tracing !== null) app.use(traceHttp(tracing, handlerNames(routes)));
  app.use(observeHttp(metrics, options.accessLog ?? log, routes));
  app.use(requireKnownHost(options.allowedHosts ?? '*'));
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins));
  app.use(refuseOtherPages(corsOrigins));
  app.use(requireApiKey(apiKeys, openPaths(routes)));
  app.use(limitExchange(context.quotas, speaksAnthropic));
  app.use(async (c, next) => {
    if (c.req.method === 'POST' && state.isDraining) throw shuttingDown(state.drainEndsInMs);
    await next();
  });
  app.use(tellUnknownFields);
  app.use(holdMemory(ledger));
  const onError = (c: Context) => respondToError(bodyTooLarge(maxBodyBytes), c);
  const stallLimitMs = options.eventStream?.stallLimitMs;
  app.use(bodyLimit({ maxSize: maxBodyBytes, stallLimitMs, isStreamed: streamedRoutes(routes), onError }));

  mountRoutes(app, context, routes);
  options.shared?.tasks.resumeWith((resumed) => resumeResponse(context, resumed));
  context.batches.answerWith((request, caller) => app.fetch(request, { inner: { caller } }));
  if (options.batches === undefined) context.batches.start();
  return app;
}

/** Also where a program serves the app, without the sockets of a server. */
async function noSniff(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  c.res.headers.set(...NO_SNIFF);
}

/** A model that is not there while the server starts may be one that is yet to come. */
function orStillLoading(error: ApiError, { status, reason }: ServerState): ApiError {
  return error.apiCode === 'model_not_found' && status === 'loading' ? stillLoading(reason ?? '') : error;
}

/** The services of all routes. */
function contextOf(
  options: AppOptions & { apiKeys: ApiKeys; maxBodyBytes: number },
  ledger: MemoryLedger,
  routes: readonly ServerRoute[],
): ServerContext {
  const { state, metrics, log, apiKeys, maxBodyBytes, life = null, tracing = null } = options;
  const { files = new FileStore(), quotas = new Quotas(), fetchedPictures } = options;
  const ofBatches = { ...BATCH_DEFAULTS, files, log, maxLineBytes: maxBodyBytes, apiKeys };
  const { batches = new Batches(ofBatches) } = options;
  return {
    models: options.models,
    state,
    metrics,
    version: options.version,
    log,
    logControl: options.logControl ?? unheard(),
    responses: new ResponseStore(
      options.shared?.place ?? new MemoryPlace(DEFAULT_STORE_LIMITS, ledger.open('stored')),
      DEFAULT_STORE_LIMITS.maxBytes,
      options.shared?.tasks ?? null,
    ),
    openMemory: ({ name }) => new RequestMemory(ledger.open('request', name), ledger.limit),
    apiKeys,
    quotas,
    files,
    batches,
    feeds: new ModelFeeds(options.models, options.feed),
    repositoryFeed: new RepositoryFeed(options.platform?.repository ?? null, options.feed),
    requests: options.requests ?? new RequestRegistry(),
    requestTimeoutMs: options.requestTimeoutMs ?? null,
    maxBodyBytes,
    platform: options.platform ?? null,
    unknownFields: options.unknownFields ?? 'warn',
    trustsTemplates: options.trustsTemplates ?? false,
    recentPrompts: new RecentPrompts(),
    promptRules: options.promptRules ?? promptRulesWithout(),
    pictureSources: (caller) => ({
      stored: storedPictures(files.of(caller)),
      fetched: allowedWay(fetchedPictures?.(caller.name), quotas.admitOf(caller)),
    }),
    toolServers: options.toolServers ?? null,
    life,
    poolWeights: options.poolWeights ?? null,
    lendModel: life === null ? null : (name, signal) => lendNamed(life, options.models, name, signal),
    adapterFolder: options.adapterFolder ?? null,
    traceDecisions: tracing?.decisions ?? null,
    routes: options.platform == null ? routes.filter((route) => ROUTES.includes(route)) : routes,
    observe: followRequests(metrics),
    eventStream: {
      ...DEFAULT_EVENT_STREAM_OPTIONS,
      onStall: () => metrics.readerStalled(),
      ...options.eventStream,
    },
  };
}

/** The way to pictures at addresses of a caller, who takes it as long as there is something left of its limits. @throws as Quotas.admit */
function allowedWay(way: PictureSources['fetched'], admit: Admit | undefined): PictureSources['fetched'] {
  if (way === undefined || admit === undefined) return way;
  return async (named, loading) => {
    const admission = await admit({ promptTokens: 1, outputTokens: 0, answers: 1 }, undefined);
    // What the whole request takes is known once its pictures are.
    admission.cancel();
    return way(named, loading);
  };
}

/** Loads the model that a request names, for routes that take one in their body or query. */
async function lendNamed(...asked: Parameters<typeof borrowNamed>): Promise<LentModel | null> {
  const lease = await borrowNamed(...asked);
  return lease === null ? null : { id: lease.model.id, release: () => lease.release() };
}

/** Settings that no log follows. */
function unheard(): LogControl {
  let levels: LogLevels = { log_info: true, log_warning: true, log_error: true, log_verbose_level: 0 };
  return {
    path: '',
    format: 'json',
    get levels() {
      return levels;
    },
    change: (changes) => {
      levels = { ...levels, ...changes };
    },
  };
}

/**
 * True where the client left before its whole body had come: reading the body then fails, which is not an
 * error.
 */
function leftEarly(c: Context<AppEnv>): boolean {
  const incoming = c.env?.incoming;
  return incoming?.destroyed === true && !incoming.complete;
}
