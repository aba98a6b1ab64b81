import type { Context } from 'hono';
import { malformed } from '../../serving/infer-failure.js';
import type { InferModel } from '../../serving/infer-model.js';
import { metadataOf, modelsCounted, statisticsOf } from '../../serving/protocol/describe-model.js';
import { extensions } from '../../serving/protocol/extensions.js';
import { knownFields } from '../../serving/protocol/known-fields.js';
import { loadParametersOf } from '../../serving/protocol/load-parameters.js';
import { noCudaMemory, noCudaRegion, noSharedMemory } from '../../serving/shared-memory/no-shared-memory.js';
import { type RegionStatus, SharedRegions } from '../../serving/shared-memory/shared-regions.js';
import { inferTerms } from '../inferring/infer-terms.js';
import { leavingSignal } from '../inferring/leaving-signal.js';
import { changeLogSettings, logSettings } from '../inferring/log-settings.js';
import { type Platform, regionAccess } from '../inferring/platform.js';
import { changeTraceSettings, tracedModel, traceSettings } from '../inferring/trace-settings.js';
import { requireAdmin } from '../web/access/auth.js';
import type { AppEnv } from '../web/app-env.js';
import { readJson, readJsonText } from '../web/bodies/read-json.js';
import { ENGINE_HEADER, engineOf, exchangeOf } from '../web/exchange.js';
import type { Route } from '../web/route.js';
import { ANY_MODEL_SOCKET, notFound } from './errors.js';
import { type AskedGenerate, answerGenerate, streamGenerate } from './generate.js';
import { readGenerateRequest } from './generate-request.js';
import { answerInfer } from './infer.js';
import { parseFields } from './request-json.js';
import { inferResponse } from './send-answer.js';
import type { KserveServices } from './services.js';
import { openSocket } from './websocket/open-socket.js';

type ProtocolRoute = Route<KserveServices>;

type Answer = (
  c: Context<AppEnv>,
  platform: Platform,
  context: KserveServices,
) => Response | Promise<Response>;

/** A route of the Open Inference Protocol; its errors have the protocol's form. */
function protocolRoute(
  method: ProtocolRoute['method'],
  path: string,
  answer: Answer,
  isOpen = false,
): ProtocolRoute {
  return {
    method,
    path,
    pattern: path.replaceAll(/\{(.+?)\}/g, ':$1'),
    open: isOpen,
    handle: async (c, context) => {
      if (context.platform === null) throw notFound();
      return answer(c, context.platform, context);
    },
    describe: async () => (await import('./describe-routes.js')).describeRoute({ method, path }),
  };
}

const MODEL = '/v2/models/{model}';
const VERSION = `${MODEL}/versions/{version}`;

/** A route of a model, and the same of one of its versions. */
function modelRoutes(method: ProtocolRoute['method'], rest: string, answer: Answer): ProtocolRoute[] {
  return [MODEL, VERSION].map((path) => protocolRoute(method, `${path}${rest}`, answer));
}

/** The model that the path names. @throws InferError, ApiError 404 for a version that is no number */
function modelOf(c: Context<AppEnv>, { repository }: Platform): InferModel {
  return repository.find(nameIn(c), versionIn(c));
}

const nameIn = (c: Context<AppEnv>) => c.req.param('model') ?? '';

function versionIn(c: Context<AppEnv>): string {
  const version = c.req.param('version') ?? '';
  if (!/^\d{0,18}$/.test(version)) throw notFound();
  return version;
}

/** Health that is well, in the form of the protocol: Triton's own answers have no body, and its clients read the status alone. */
const well = (body: object) => Response.json(body);

const notWell = (error: string) => Response.json({ error }, { status: 400 });

function readiness({ state: { status, reason } }: KserveServices): Response {
  if (status === 'ready' || status === 'degraded') return well({ ready: true });
  return notWell(`Server not ready${reason === null ? '' : `: ${reason}`}`);
}

function modelReadiness(c: Context<AppEnv>, { repository }: Platform): Response {
  const name = nameIn(c);
  const isReady = repository.isReady(name, versionIn(c));
  return isReady ? well({ name, ready: true }) : notWell('Model version not ready');
}

/** The body as JSON; undefined where there is none. @throws ApiError */
async function jsonOf(c: Context<AppEnv>): Promise<unknown> {
  const { byteLength } = await c.req.arrayBuffer();
  return byteLength === 0 ? undefined : readJson(c, c.get('memory'));
}

/** A request of the generate extension, with the function that answers it. */
async function generate(
  c: Context<AppEnv>,
  platform: Platform,
  context: KserveServices,
  answer: (asked: AskedGenerate) => Promise<Response>,
): Promise<Response> {
  const model = modelOf(c, platform);
  const exchange = exchangeOf(c, context);
  const { registry, caller, requestId, memory } = exchange.terms;
  return registry.accept(caller, requestId, async (live) => {
    const body = parseFields(await readJsonText(c, memory));
    const read = readGenerateRequest(model.config, body, model.kind === 'generator');
    return answer({ model, read, exchange, live });
  });
}

/** Routes of system shared memory, where clients on this machine may use it. */
const SYSTEM_MEMORY_ROUTES: readonly ProtocolRoute[] = [
  ...['', '/region/{region}'].flatMap((rest) => [
    protocolRoute('get', `/v2/systemsharedmemory${rest}/status`, (c, { sharedMemory }) =>
      Response.json((sharedMemory ?? NO_REGIONS).status(c.req.param('region') ?? '').map(statusOfRegion)),
    ),
    protocolRoute('post', `/v2/systemsharedmemory${rest}/unregister`, (c, { sharedMemory }, { apiKeys }) => {
      if (sharedMemory !== null) requireAdmin(c.get('caller'), apiKeys);
      sharedMemory?.unregister(c.req.param('region') ?? '');
      return new Response();
    }),
  ]),
  protocolRoute(
    'post',
    '/v2/systemsharedmemory/region/{region}/register',
    async (c, { sharedMemory }, { apiKeys }) => {
      if (sharedMemory === null) throw noSharedMemory();
      requireAdmin(c.get('caller'), apiKeys);
      await sharedMemory.register(regionOf(c.req.param('region') ?? '', await jsonOf(c)));
      return new Response();
    },
  ),
];

/**
 * Answers for clients without permission: there are no regions, as clients learn that clear them at their
 * start.
 */
const NO_REGIONS = new SharedRegions({ maxRegions: 0, maxRegionBytes: 0, maxBytes: 0 });

const statusOfRegion = ({ name, key, offset, byteSize }: RegionStatus) => ({
  name,
  key,
  offset,
  byte_size: byteSize,
});

/** The body of a registration. @throws InferError */
function regionOf(name: string, body: unknown): RegionStatus {
  const {
    key,
    offset = 0,
    byte_size: byteSize,
  } = knownFields(body, 'the request', ['key', 'offset', 'byte_size']);
  if (key === undefined) throw malformed("Shared memory register request has no 'key' field");
  if (byteSize === undefined) throw malformed("Shared memory register request has no 'byte_size' field");
  if (typeof key !== 'string') throw malformed("Unable to parse 'key': a string is expected");
  if (typeof offset !== 'number' || typeof byteSize !== 'number') {
    throw malformed("Unable to parse 'offset' and 'byte_size': whole numbers from 0 are expected");
  }
  return { name, key, offset, byteSize };
}

/**
 * Routes of shared memory of GPUs: there are no regions, as clients learn that look for them or clear them at
 * their start.
 */
function cudaMemoryRoutes(): ProtocolRoute[] {
  const path = '/v2/cudasharedmemory';
  const ofRegion = `${path}/region/{region}`;
  return [
    protocolRoute('get', `${path}/status`, () => Response.json([])),
    protocolRoute('get', `${ofRegion}/status`, (c) => {
      throw noCudaRegion(c.req.param('region') ?? '');
    }),
    protocolRoute('post', `${ofRegion}/register`, () => {
      throw noCudaMemory();
    }),
    ...[path, ofRegion].map((one) => protocolRoute('post', `${one}/unregister`, () => new Response())),
  ];
}

const statistics = (models: readonly InferModel[]) =>
  Response.json({ model_stats: models.map(statisticsOf) });

/** Routes of the Open Inference Protocol with Triton's extensions. Those with fewer parameters go before those that would take their paths. */
export const KSERVE_ROUTES: readonly ProtocolRoute[] = [
  protocolRoute('get', '/v2', (_, { serverId, sharedMemory }, { version }) =>
    Response.json({ name: serverId, version, extensions: extensions(sharedMemory !== null) }),
  ),
  protocolRoute('get', '/v2/health/live', () => well({ live: true }), true),
  protocolRoute('get', '/v2/health/ready', (_, __, context) => readiness(context), true),
  protocolRoute('get', '/v2/models/stats', (_, { repository }) =>
    statistics(modelsCounted(repository, '', '')),
  ),
  ...modelRoutes('get', '/ready', modelReadiness),
  ...modelRoutes('get', '/config', (c, platform) => Response.json(modelOf(c, platform).config)),
  ...modelRoutes('get', '/stats', (c, { repository }) =>
    statistics(modelsCounted(repository, nameIn(c), versionIn(c))),
  ),
  ...modelRoutes('post', '/generate', (c, platform, context) =>
    generate(c, platform, context, async (asked) => inferResponse(c, await answerGenerate(asked))),
  ),
  ...modelRoutes('post', '/generate_stream', (c, platform, context) =>
    generate(c, platform, context, (asked) => streamGenerate(asked, context.eventStream)),
  ),
  ...modelRoutes('post', '/infer', async (c, platform, { maxBodyBytes, requestTimeoutMs, apiKeys }) => {
    const memory = c.get('memory');
    const engine = engineOf(c.req.header(ENGINE_HEADER));
    const asker = { caller: c.get('caller'), requestId: c.get('requestId') };
    const known = { ...asker, timeLimitMs: requestTimeoutMs, engine };
    const answer = await answerInfer(modelOf(c, platform), {
      body: new Uint8Array(await c.req.arrayBuffer()),
      jsonLength: c.req.header('inference-header-content-length'),
      signal: leavingSignal(c.env?.incoming?.socket) ?? c.req.raw.signal,
      owner: c.get('caller').name,
      memory,
      terms: inferTerms({ ...known, memory, tally: c.get('tally'), admit: c.get('admit') }),
      regions: regionAccess(platform, c.get('caller'), apiKeys, maxBodyBytes),
      trace: c.get('trace'),
    });
    return inferResponse(c, answer);
  }),
  ...modelRoutes('get', '/infer', (c, platform, context) =>
    openSocket(c, platform, context, { name: nameIn(c), version: versionIn(c) }),
  ),
  protocolRoute('get', ANY_MODEL_SOCKET, (c, platform, context) => openSocket(c, platform, context, null)),
  ...['/v2/trace/setting', `${MODEL}/trace/setting`].flatMap((path) => [
    protocolRoute('get', path, (c, platform, { traceDecisions }) =>
      Response.json(traceSettings(traceDecisions, tracedModel(platform.repository, nameIn(c)))),
    ),
    protocolRoute('post', path, async (c, platform, { traceDecisions, apiKeys }) => {
      requireAdmin(c.get('caller'), apiKeys);
      const model = tracedModel(platform.repository, nameIn(c));
      return Response.json(changeTraceSettings(traceDecisions, model, await jsonOf(c)));
    }),
  ]),
  protocolRoute('get', '/v2/logging', (_, __, { logControl }) => Response.json(logSettings(logControl))),
  protocolRoute('post', '/v2/logging', async (c, _, { logControl, apiKeys }) => {
    requireAdmin(c.get('caller'), apiKeys);
    return Response.json(changeLogSettings(logControl, await jsonOf(c)));
  }),
  ...SYSTEM_MEMORY_ROUTES,
  ...cudaMemoryRoutes(),
  protocolRoute('post', '/v2/repository/index', async (c, { repository }) => {
    const { ready } = knownFields(await jsonOf(c), 'the request', ['ready']);
    const readyOnly = ready ?? false;
    if (typeof readyOnly !== 'boolean') throw malformed("'ready' is to be true or false");
    return Response.json(await repository.index({ readyOnly }));
  }),
  protocolRoute(
    'post',
    '/v2/repository/models/{model}/load',
    async (c, { repository, allowsUpload }, { apiKeys }) => {
      requireAdmin(c.get('caller'), apiKeys);
      const endpoint = await repository.load(nameIn(c), loadParametersOf(await jsonOf(c), allowsUpload));
      return Response.json({ endpoint });
    },
  ),
  protocolRoute('post', '/v2/repository/models/{model}/unload', async (c, { repository }, { apiKeys }) => {
    requireAdmin(c.get('caller'), apiKeys);
    const { parameters } = knownFields(await jsonOf(c), 'the request', ['parameters']);
    const { unload_dependents } = knownFields(parameters, "'parameters'", ['unload_dependents']);
    const unloadDependents = unload_dependents ?? false;
    if (typeof unloadDependents !== 'boolean') throw malformed("'unload_dependents' is to be true or false");
    await repository.unload(nameIn(c), { unloadDependents });
    return new Response(null, { status: 200, headers: { 'content-type': 'application/json' } });
  }),
  ...modelRoutes('get', '', (c, platform) => {
    const model = modelOf(c, platform);
    const versions = platform.repository.versions(nameIn(c)).map(({ version }) => version);
    return Response.json(metadataOf(model, versionIn(c) === '' ? versions : [model.version]));
  }),
];
