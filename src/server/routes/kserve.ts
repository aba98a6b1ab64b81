import type { Context } from 'hono';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferModel } from '../../serving/infer-model.js';
import type { ModelRepository } from '../../serving/model-repository.js';
import { metadataOf, statisticsOf } from '../../serving/protocol/describe-model.js';
import { loadParametersOf } from '../../serving/protocol/load-parameters.js';
import { malformed } from '../../serving/protocol/malformed.js';
import {
  checkSettings,
  EXTENSIONS,
  fieldsOf,
  LOG_SETTINGS,
  TRACE_SETTINGS,
} from '../../serving/protocol/settings.js';
import { requireAdmin } from '../auth.js';
import { notFound } from '../kserve/errors.js';
import { answerInfer } from '../kserve/infer.js';
import { leavingSignal } from '../kserve/leaving-signal.js';
import { inferResponse } from '../kserve/send-answer.js';
import { readJson } from '../read-json.js';
import type { AppEnv, Route, ServerContext } from './route.js';

/** A server of the protocol: its models, and what it says of itself. */
interface Platform {
  repository: ModelRepository;
  serverId: string;
  allowsUpload: boolean;
}

type Answer = (
  c: Context<AppEnv>,
  platform: Platform,
  context: ServerContext,
) => Response | Promise<Response>;

/** A route of the Open Inference Protocol; its errors have the protocol's form. */
function protocolRoute(method: Route['method'], path: string, answer: Answer, isOpen = false): Route {
  return {
    method,
    path,
    pattern: path.replaceAll(/\{(.+?)\}/g, ':$1'),
    open: isOpen,
    handle: async (c, context) => {
      if (context.platform === null) throw notFound();
      return answer(c, context.platform, context);
    },
    describe: async () => (await import('../kserve/describe-routes.js')).describeRoute({ method, path }),
  };
}

const MODEL = '/v2/models/{model}';
const VERSION = `${MODEL}/versions/{version}`;

/** A route of a model, and the same of one of its versions. */
function modelRoutes(method: Route['method'], rest: string, answer: Answer): Route[] {
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

/** An empty answer, as health has them. */
const empty = (status: number) =>
  status === 200
    ? new Response(null, { status, headers: { 'content-type': 'text/plain' } })
    : Response.json(
        { error: status === 400 ? 'Model version not ready' : 'Server not ready' },
        { status: 400 },
      );

/** The body as JSON; undefined where there is none. @throws ApiError */
async function jsonOf(c: Context<AppEnv>): Promise<unknown> {
  const { byteLength } = await c.req.arrayBuffer();
  return byteLength === 0 ? undefined : readJson(c, c.get('memory'));
}

/** @param body what is to be set; undefined: nothing @throws InferError */
function traceSettings(c: Context<AppEnv>, { repository }: Platform, body: unknown): Response {
  const name = nameIn(c);
  const isKnown = name === '' || repository.loaded().some(({ config }) => config.name === name);
  if (!isKnown) throw malformed(`Request for unknown model : ${name}`);
  checkSettings(TRACE_SETTINGS, body, 'this server records no traces');
  return Response.json(TRACE_SETTINGS);
}

/**
 * Routes of a kind of shared memory: there are no regions, as clients hear that look for them or that clear them at their start.
 */
function sharedMemoryRoutes(kind: 'system' | 'cuda'): Route[] {
  const path = `/v2/${kind}sharedmemory`;
  const ofRegion = `${path}/region/{region}`;
  return [
    protocolRoute('get', `${path}/status`, () => Response.json([])),
    protocolRoute('get', `${ofRegion}/status`, (c) => {
      const region = c.req.param('region');
      throw new InferError(`Unable to find ${kind} shared memory region: '${region}'`, 'notFound');
    }),
    protocolRoute('post', `${ofRegion}/register`, () => {
      throw new InferError(
        `this server has no ${kind} shared memory: tensors come in requests`,
        'unsupported',
      );
    }),
    ...[path, ofRegion].map((one) => protocolRoute('post', `${one}/unregister`, () => empty(200))),
  ];
}

const statistics = (models: readonly InferModel[]) =>
  Response.json({ model_stats: models.map(statisticsOf) });

/** Routes of the Open Inference Protocol with Triton's extensions. Those with fewer parameters go before those that would take their paths. */
export const KSERVE_ROUTES: readonly Route[] = [
  protocolRoute('get', '/v2', (_, { serverId }, { version }) =>
    Response.json({ name: serverId, version, extensions: EXTENSIONS }),
  ),
  protocolRoute('get', '/v2/health/live', () => empty(200), true),
  protocolRoute(
    'get',
    '/v2/health/ready',
    (_, __, { state }) => empty(state.status === 'ready' || state.status === 'degraded' ? 200 : 503),
    true,
  ),
  protocolRoute('get', '/v2/models/stats', (_, { repository }) => statistics(repository.loaded())),
  ...modelRoutes('get', '/ready', (c, { repository }) =>
    empty(repository.isReady(nameIn(c), versionIn(c)) ? 200 : 400),
  ),
  ...modelRoutes('get', '/config', (c, platform) => Response.json(modelOf(c, platform).config)),
  ...modelRoutes('get', '/stats', (c, { repository }) => {
    const version = versionIn(c);
    const found = repository.loaded().filter(({ config }) => config.name === nameIn(c));
    const asked = version === '' ? found : found.filter((model) => model.version === version);
    if (asked.length === 0) {
      throw malformed(
        found.length === 0
          ? `requested model '${nameIn(c)}' is not available`
          : `requested model version is not available for model '${nameIn(c)}'`,
      );
    }
    return statistics(asked);
  }),
  ...modelRoutes('post', '/infer', async (c, platform, { maxBodyBytes }) => {
    const answer = await answerInfer(modelOf(c, platform), {
      body: new Uint8Array(await c.req.arrayBuffer()),
      contentEncoding: c.req.header('content-encoding'),
      jsonLength: c.req.header('inference-header-content-length'),
      signal: leavingSignal(c.env?.incoming?.socket) ?? c.req.raw.signal,
      memory: c.get('memory'),
      maxBodyBytes,
    });
    return inferResponse(c, answer);
  }),
  ...['/v2/trace/setting', `${MODEL}/trace/setting`].flatMap((path) => [
    protocolRoute('get', path, (c, platform) => traceSettings(c, platform, undefined)),
    protocolRoute('post', path, async (c, platform) => traceSettings(c, platform, await jsonOf(c))),
  ]),
  protocolRoute('get', '/v2/logging', () => Response.json(LOG_SETTINGS)),
  protocolRoute('post', '/v2/logging', async (c) => {
    checkSettings(LOG_SETTINGS, await jsonOf(c), '--log-level and --access-log decide');
    return Response.json(LOG_SETTINGS);
  }),
  ...sharedMemoryRoutes('system'),
  ...sharedMemoryRoutes('cuda'),
  protocolRoute('post', '/v2/repository/index', async (c, { repository }) => {
    const { ready = false } = fieldsOf(await jsonOf(c));
    if (typeof ready !== 'boolean') throw malformed("'ready' is to be true or false");
    return Response.json(await repository.index({ readyOnly: ready }));
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
    const { unload_dependents = false } = fieldsOf(fieldsOf(await jsonOf(c)).parameters);
    if (typeof unload_dependents !== 'boolean') throw malformed("'unload_dependents' is to be true or false");
    await repository.unload(nameIn(c), { unloadDependents: unload_dependents });
    return new Response(null, { status: 200, headers: { 'content-type': 'application/json' } });
  }),
  ...modelRoutes('get', '', (c, platform) => {
    const model = modelOf(c, platform);
    const versions = platform.repository.versions(nameIn(c)).map(({ version }) => version);
    return Response.json(metadataOf(model, versionIn(c) === '' ? versions : [model.version]));
  }),
];
