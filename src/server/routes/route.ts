import type { HttpBindings } from '@hono/node-server';
import type { RouteConfig } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type * as z from 'zod';
import type { AnswerTally } from '../../../callbacks/infer/answer-tally.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { UnknownFieldRule } from '../../schemas/field-rules.js';
import type { UnknownFields } from '../../schemas/unknown-fields.js';
import { speaksAnthropic } from '../anthropic/errors.js';
import type { ApiKeys, Caller } from '../api-keys.js';
import type { Batches } from '../batches/batches.js';
import { unlessStalled } from '../body-limit.js';
import type { FileStore } from '../files/file-store.js';
import { type ReadFile, readForm } from '../files/read-form.js';
import { isLoopbackAddress } from '../loopback.js';
import type { Metrics } from '../metrics/metrics.js';
import type { ModelFeeds } from '../model-feeds.js';
import { borrowNamed, type ModelLife } from '../model-life.js';
import type { Exchange } from '../openai/respond.js';
import type { ResponseStore } from '../openai/responses/response-store.js';
import type { RouteContext } from '../openai/route-context.js';
import { parseBody, parseParameters } from '../openai/schemas/parse.js';
import type { Platform } from '../platform.js';
import { chunksOf } from '../read-body.js';
import { readJson } from '../read-json.js';
import type { RepositoryFeed } from '../repository-feed.js';
import type { RequestMemory } from '../request-memory.js';
import type { RequestRegistry } from '../request-registry.js';
import type { LogControl, ServerLog } from '../server-log.js';
import type { ServerState } from '../server-state.js';
import { HttpStreamConnection } from '../stream-connection.js';
import type { TraceDecisions } from '../tracing/trace-settings.js';
import { noteWarning } from '../warnings.js';

export type AppEnv = {
  Bindings: Partial<HttpBindings> & {
    /** Of a request that the server makes itself, for a batch: whose it is. */
    inner?: { caller: Caller };
  };
  Variables: {
    requestId: string;
    caller: Caller;
    memory: RequestMemory;
    /** What of the request has no effect. */
    warnings?: readonly string[];
    /** Adds up what models compute for the request, for its line in the access log. */
    tally: AnswerTally;
    /** The request's span; absent: it is not traced. */
    trace?: TraceSpan;
    /** Fields of the body that nobody knows; absent: there are none, or they are not to be told. */
    unknownFields?: UnknownFields;
    /** Body of a direct answer. */
    directBody?: string | Uint8Array<ArrayBuffer>;
  };
};

/** Services that all routes use. */
export interface ServerContext extends RouteContext {
  state: ServerState;
  metrics: Metrics;
  version: string;
  log: ServerLog;
  /** What is logged. */
  logControl: LogControl;
  responses: ResponseStore;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
  apiKeys: ApiKeys;
  /** Feeds of all models that generate text. */
  feeds: ModelFeeds;
  /** Feed of all models of the repository, whatever they take. */
  repositoryFeed: RepositoryFeed;
  /** Registry of the requests that are being answered. */
  requests: RequestRegistry;
  /** Most milliseconds that an answer may take; null: no limit. */
  requestTimeoutMs: number | null;
  /** Bytes of the longest body. */
  maxBodyBytes: number;
  /** The Open Inference Protocol's server; null: its routes are not there. */
  platform: Platform | null;
  /** Which requests are traced; null: there is no tracing. */
  traceDecisions: TraceDecisions | null;
  /** What happens to fields of bodies that nobody knows. */
  unknownFields: UnknownFieldRule;
  /** Folder of the LoRA adapters that clients may load; null: they may load none. */
  adapterFolder: string | null;
  /** Models that are loaded on demand; null: there are none. */
  life: ModelLife | null;
  /** Files of clients. */
  files: FileStore;
  batches: Batches;
  /** All routes, for the description of the API. */
  routes: readonly Route[];
}

/** One route: its method and path, the function that answers it, and its description in the API's own documentation. */
export interface Route {
  method: 'get' | 'post' | 'delete';
  /** Path as OpenAPI writes it, with parameters in braces; also the route's name in the metrics. */
  path: string;
  /** Path as Hono writes it. */
  pattern: string;
  /** True where no API key is needed. */
  open: boolean;
  /** True where the handler reads the body itself, as it comes: it is not limited and counted before. */
  streamsBody?: boolean;
  handle(c: Context<AppEnv>, context: ServerContext): Promise<Response>;
  /** The same with a body that was read and parsed before. */
  handleJson?(json: unknown, c: Context<AppEnv>, context: ServerContext): Promise<Response>;
  /** The description for createRoute of @hono/zod-openapi. */
  describe(): Promise<RouteConfig>;
}

export type Responses = RouteConfig['responses'];

type Parsed<T> = T extends z.ZodObject ? z.output<T> : undefined;

interface Request<Body, Params, Query, Form> {
  body: Parsed<Body>;
  /** Reads the form that the body is. @throws ApiError */
  readForm(onFile: ReadFile): Promise<Parsed<Form>>;
  params: Parsed<Params>;
  query: Parsed<Query>;
  exchange: Exchange;
  /** True where the client speaks Anthropic's API. */
  speaksAnthropic: boolean;
  /** True where the request comes from this machine. */
  isLocal: boolean;
  /** True where the client reads compressed answers. */
  takesGzip: boolean;
  /** The client's If-None-Match: validators of the copies that it has. */
  knownTags: string | undefined;
}

interface RouteDefinition<Body, Params, Query, Form> {
  method: Route['method'];
  path: string;
  /** Hono's path, given where a parameter spans several segments. */
  pattern?: string;
  tags: readonly Tag[];
  summary: string;
  description?: string;
  /** Schemas that validate, type and document: of the JSON body, of the path's and of the query's parameters. */
  body?: Body;
  params?: Params;
  query?: Query;
  /** True where a request without a body has an empty object; default: it is refused. */
  mayLackBody?: boolean;
  /** Schema of the fields of a form with one file, which is the body; it is read by `readForm`. */
  form?: Form;
  /** Parameters of the query that the schema does not have are ignored; default: they are refused by name. */
  ignoresUnknownQuery?: boolean;
  /** Example bodies by name, for readers of the description. */
  examples?: Readonly<Record<string, unknown>>;
  /** Answers, made when the description is asked for and not at the start. */
  responses: () => Responses | Promise<Responses>;
  /** True where no API key is needed: the route tells nothing of the models and changes nothing. */
  open?: boolean;
  /** True where the `model` of the body, or of the query, is loaded for the request if it lies in the folder of models. */
  loadsModel?: boolean;
  handle(request: Request<Body, Params, Query, Form>, context: ServerContext): Response | Promise<Response>;
}

/** Topics of routes, in the order of the description. */
export const TAGS = {
  Generation: 'Text from a model.',
  Encoders: 'Embeddings and scores of texts.',
  Messages: "Text from a model, by Anthropic's API.",
  Responses: "Text from a model, by OpenAI's newer API, which keeps conversations.",
  Conversations: 'Conversations that responses answer and add to.',
  Batches: 'Many requests in a file, answered while others are served.',
  Ollama: "Ollama's API, for its clients.",
  Inference: 'Tensors into and out of any model, by the Open Inference Protocol (KServe v2).',
  Models: 'What is served.',
  Server: 'How the server fares.',
  Documentation: 'What the server says of itself.',
} as const;

export type Tag = keyof typeof TAGS;

type Schema = z.ZodObject | undefined;

export function defineRoute<
  Body extends Schema = undefined,
  Params extends Schema = undefined,
  Query extends Schema = undefined,
  Form extends Schema = undefined,
>(definition: RouteDefinition<Body, Params, Query, Form>): Route {
  const { method, path, pattern = path.replaceAll(/\{(.+?)\}/g, ':$1') } = definition;
  const { body, params, query, form } = definition;
  const handleJson = async (json: unknown, c: Context<AppEnv>, context: ServerContext) => {
    const request = {
      body: body && bodyOf(body, json, c, context),
      readForm: (onFile: ReadFile) => formOf(form!, onFile, c, context),
      params: params && parseParameters(params, c.req.param()),
      query: query && parseParameters(query, queryOf(c, definition.ignoresUnknownQuery ? query : null)),
      exchange: exchangeOf(c, context),
      speaksAnthropic: speaksAnthropic(c),
      isLocal: isLoopbackAddress(c.env?.incoming?.socket.remoteAddress ?? ''),
      takesGzip: /\bgzip\b/.test(c.req.header('accept-encoding') ?? ''),
      knownTags: c.req.header('if-none-match'),
    };
    const handle = () => definition.handle(request as Request<Body, Params, Query, Form>, context);
    if (!definition.loadsModel || context.life === null) return handle();
    const naming = (request.body ?? request.query) as { model?: unknown };
    const lease = await borrowNamed(context.life, context.models, naming.model, request.exchange.signal);
    try {
      if (lease !== null) naming.model = lease.model.id;
      return await handle();
    } finally {
      lease?.release();
    }
  };
  return {
    method,
    path,
    pattern,
    open: definition.open ?? false,
    streamsBody: form !== undefined,
    handle: async (c, context) => {
      const json = body && (await readJson(c, c.get('memory'), definition.mayLackBody));
      return handleJson(json, c, context);
    },
    handleJson,
    describe: async () => {
      const { tags, summary, description, examples } = definition;
      const content = { schema: body, ...(examples && { examples: named(examples) }) };
      const request = {
        ...(body && {
          body: { required: !definition.mayLackBody, content: { 'application/json': content } },
        }),
        ...(form && { body: { required: true, content: { 'multipart/form-data': { schema: form } } } }),
        ...(params && { params }),
        ...(query && { query }),
      };
      const responses = await definition.responses();
      return {
        method,
        path,
        tags: [...tags],
        operationId: operationId(method, path),
        summary,
        ...(description && { description }),
        request,
        responses,
      } as RouteConfig;
    },
  };
}

/** Validates a body, and has its unknown fields told with the answer and in the log. @throws ApiError 400. */
function bodyOf(schema: z.ZodObject, json: unknown, c: Context<AppEnv>, context: ServerContext): unknown {
  return parseBody(schema, json, context.unknownFields, (unknown) => {
    c.set('unknownFields', unknown);
    const fields = unknown.text;
    context.log.warn({ requestId: c.get('requestId'), path: c.req.path, fields }, 'unknown fields');
  });
}

/** Reads a form as it comes, and validates its fields. @throws ApiError */
async function formOf(
  schema: z.ZodObject,
  onFile: ReadFile,
  c: Context<AppEnv>,
  context: ServerContext,
): Promise<never> {
  const incoming = c.env?.incoming;
  const source = {
    contentType: c.req.header('content-type'),
    contentEncoding: c.req.header('content-encoding'),
    chunks: incoming?.iterator({ destroyOnReturn: false }) ?? chunksOf(c.req.raw),
  };
  const fields = await unlessStalled(readForm(source, onFile), incoming, context.eventStream.stallLimitMs);
  return bodyOf(schema, fields, c, context) as never;
}

/** The query's parameters; with a schema those that it has. */
function queryOf(c: Context<AppEnv>, schema: z.ZodObject | null): Record<string, string> {
  const given = c.req.query();
  if (schema === null) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(schema.shape, name)));
}

/** Examples in OpenAPI's form, {name: {value}}. */
function named(examples: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

/** Id of an operation: `postChatCompletions` of POST /v1/chat/completions. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '' && word !== 'v1');
  return method + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('');
}

/** What an answer needs of its HTTP exchange. */
export function exchangeOf(c: Context<AppEnv>, { log, requests, requestTimeoutMs }: ServerContext): Exchange {
  const outgoing = c.env?.outgoing;
  return {
    signal: c.req.raw.signal,
    connection: outgoing === undefined ? null : new HttpStreamConnection(outgoing),
    logError: (error) =>
      log.error({ err: error, requestId: c.get('requestId'), path: c.req.path }, 'stream failed'),
    warn: (text) => {
      log.warn({ requestId: c.get('requestId'), path: c.req.path }, text);
      noteWarning(c, text);
    },
    terms: {
      caller: c.get('caller'),
      requestId: c.get('requestId'),
      timeLimitMs: requestTimeoutMs,
      registry: requests,
      memory: c.get('memory'),
      tally: c.get('tally'),
      trace: c.get('trace'),
      isBatch: c.env?.inner !== undefined,
    },
  };
}
