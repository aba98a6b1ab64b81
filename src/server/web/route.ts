import type { RouteConfig } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type * as z from 'zod';
import type { UnknownFieldRule } from '../../schemas/field-rules.js';
import { isLoopbackAddress } from './access/loopback.js';
import type { AppEnv } from './app-env.js';
import { unlessStalled } from './bodies/body-limit.js';
import { chunksOf } from './bodies/read-body.js';
import { type ReadFile, readForm } from './bodies/read-form.js';
import { readJson } from './bodies/read-json.js';
import type { EventStreamOptions } from './event-stream.js';
import { type Exchange, type ExchangeServices, exchangeOf } from './exchange.js';
import { parseBody, parseParameters } from './parse.js';
import type { Tag } from './tags.js';

/** Services that every route needs, whatever its protocol. */
export interface RouteServices extends ExchangeServices {
  /** What happens to unknown fields of bodies. */
  unknownFields: UnknownFieldRule;
  eventStream: EventStreamOptions;
  /** Loads the model that a request names, and keeps it until `release`; null: all models are loaded at the start. */
  lendModel: ((name: unknown, signal: AbortSignal) => Promise<LentModel | null>) | null;
}

/** A model that stays loaded for a request. */
export interface LentModel {
  /** Its own name, whatever the request called it. */
  id: string;
  release(): void;
}

/**
 * One route: its method and path, the function that answers it, and its description in the API's own documentation.
 * `Services` is what its protocol declares that it needs; the app has all of them.
 */
export interface Route<Services = never> {
  method: 'get' | 'post' | 'delete';
  /** Path as OpenAPI writes it, with parameters in braces; also the route's name in the metrics. */
  path: string;
  /** Path as Hono writes it. */
  pattern: string;
  /** True where no API key is needed. */
  open: boolean;
  /** True where the handler reads the body itself, as it comes: it is not limited and counted before. */
  streamsBody?: boolean;
  handle(c: Context<AppEnv>, context: Services): Promise<Response>;
  /** The same with a body that was read and parsed before. */
  handleJson?(json: unknown, c: Context<AppEnv>, context: Services): Promise<Response>;
  /** The description for createRoute of @hono/zod-openapi. */
  describe(): Promise<RouteConfig>;
}

export type Responses = RouteConfig['responses'];

type Parsed<T> = T extends z.ZodObject ? z.output<T> : undefined;

export interface RouteRequest<Body, Params, Query, Form> {
  body: Parsed<Body>;
  /** The body as it came, of which `body` was made. */
  json: unknown;
  /** Reads the form that the body is. @throws ApiError */
  readForm(onFile: ReadFile): Promise<Parsed<Form>>;
  params: Parsed<Params>;
  query: Parsed<Query>;
  exchange: Exchange;
  /** A header of the request. */
  header(name: string): string | undefined;
  /** True where the request comes from this machine. */
  isLocal: boolean;
  /** True where the client reads compressed answers. */
  takesGzip: boolean;
  /** The client's If-None-Match: validators of the copies that it has. */
  knownTags: string | undefined;
}

export interface RouteDefinition<Services, Body, Params, Query, Form> {
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
  /** True where no API key is needed: the route reveals nothing about the models and changes nothing. */
  open?: boolean;
  /** True where the `model` of the body, or of the query, is loaded for the request if it lies in the folder of models. */
  loadsModel?: boolean;
  handle(request: RouteRequest<Body, Params, Query, Form>, context: Services): Response | Promise<Response>;
}

type Schema = z.ZodObject | undefined;

/** Makes the `defineRoute` of a protocol, whose routes get the services that it declares. */
export function routesWith<Services extends RouteServices>() {
  return <
    Body extends Schema = undefined,
    Params extends Schema = undefined,
    Query extends Schema = undefined,
    Form extends Schema = undefined,
  >(
    definition: RouteDefinition<Services, Body, Params, Query, Form>,
  ): Route<Services> => routeOf(definition);
}

function routeOf<
  Services extends RouteServices,
  Body extends Schema,
  Params extends Schema,
  Query extends Schema,
  Form extends Schema,
>(definition: RouteDefinition<Services, Body, Params, Query, Form>): Route<Services> {
  const { method, path, pattern = path.replaceAll(/\{(.+?)\}/g, ':$1') } = definition;
  const { body, params, query, form } = definition;
  const handleJson = async (json: unknown, c: Context<AppEnv>, context: Services) => {
    const request = {
      body: body && bodyOf(body, json, c, context),
      json,
      readForm: (onFile: ReadFile) => formOf(form!, onFile, c, context),
      params: params && parseParameters(params, c.req.param()),
      query: query && parseParameters(query, queryOf(c, definition.ignoresUnknownQuery ? query : null)),
      exchange: exchangeOf(c, context),
      header: (name: string) => c.req.header(name),
      isLocal: isLoopbackAddress(c.env?.incoming?.socket.remoteAddress ?? ''),
      takesGzip: /\bgzip\b/.test(c.req.header('accept-encoding') ?? ''),
      knownTags: c.req.header('if-none-match'),
    };
    const handle = () => definition.handle(request as RouteRequest<Body, Params, Query, Form>, context);
    if (!definition.loadsModel || context.lendModel === null) return handle();
    const naming = (request.body ?? request.query) as { model?: unknown };
    const lease = await context.lendModel(naming.model, request.exchange.signal);
    try {
      if (lease !== null) naming.model = lease.id;
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

/**
 * Validates a body, and has its unknown fields reported with the answer and in the log. @throws ApiError 400.
 */
function bodyOf(schema: z.ZodObject, json: unknown, c: Context<AppEnv>, context: RouteServices): unknown {
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
  context: RouteServices,
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
