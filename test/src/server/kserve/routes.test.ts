import { describe, expect, it } from 'vitest';
import { isOfProtocol } from '../../../../src/server/kserve/errors.js';
import { KSERVE_ROUTES } from '../../../../src/server/kserve/routes.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import { LiveModels } from '../../../../src/serving/model-directory.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';
import { fakePlatform } from './support/fake-platform.js';

const model = () => new FakeModel(fakeConfig({ name: 'm', type: 'TYPE_INT32', dims: [-1] }));
const setUp = (options: Parameters<typeof fakePlatform>[1] = {}) => fakePlatform([model()], options);
const answerOf = async (response: Response) => {
  const text = await response.text();
  return [response.status, text === '' ? null : JSON.parse(text)];
};

describe('settings of the log', () => {
  it('are changed, null excepted', async () => {
    const platform = setUp();
    const is = { log_file: '', log_info: true, log_warning: true, log_error: true, log_verbose_level: 0 };
    const changed = { ...is, log_info: false, log_verbose_level: 2, log_format: 'default' };
    const change = { log_info: false, log_verbose_level: 2, log_format: 'default', log_error: null };
    expect(await answerOf(await platform.post('/v2/logging', change))).toEqual([200, changed]);
    expect(await answerOf(await platform.get('/v2/logging'))).toEqual([200, changed]);
    expect(await answerOf(await platform.post('/v2/logging', ''))).toEqual([200, changed]);
  });

  it.each([
    ['log_inf', true, 400, "'log_inf' is no setting; there are log_file, log_info"],
    ['log_info', 1, 400, "'log_info' is to be true or false"],
    ['log_verbose_level', -1, 400, "'log_verbose_level' is to be a whole number from 0"],
    ['log_verbose_level', '1', 400, "'log_verbose_level' is to be a whole number from 0"],
    ['log_file', '/tmp/x', 501, 'log file location can not be updated through network protocol'],
    ['log_format', 'ISO8601', 501, "'log_format' cannot be changed: each line is a JSON object"],
  ])(
    'are refused by name where they cannot be, and then none is changed: %s %s',
    async (name, value, status, error) => {
      const platform = setUp();
      const answer = await answerOf(await platform.post('/v2/logging', { log_error: false, [name]: value }));
      expect(answer).toEqual([status, { error: expect.stringContaining(error) }]);
      expect((await answerOf(await platform.get('/v2/logging')))[1]).toMatchObject({ log_error: true });
    },
  );

  it('are changed by admins alone where there are several keys', async () => {
    const apiKeys = new ApiKeys([
      { name: 'ali', key: 'a', weight: 1 },
      { name: 'boss', key: 'b', weight: 1, admin: true },
    ]);
    const platform = setUp({ apiKeys });
    const as = (key: string) =>
      platform.post('/v2/logging', { log_info: false }, { headers: { 'x-api-key': key } });
    expect((await as('a')).status).toBe(403);
    expect((await as('b')).status).toBe(200);
  });
});

describe('health', () => {
  it("has the bodies of the protocol's document", async () => {
    const platform = setUp();
    expect(await answerOf(await platform.get('/v2/health/live?x=1'))).toEqual([200, { live: true }]);
    expect(await answerOf(await platform.get('/v2/health/ready?x=1'))).toEqual([200, { ready: true }]);
    for (const path of ['/v2/models/m/ready', '/v2/models/m/versions/1/ready'])
      expect(await answerOf(await platform.get(path))).toEqual([200, { name: 'm', ready: true }]);
    expect(await answerOf(await platform.get('/v2/models/m/versions/2/ready'))).toEqual([
      400,
      { error: 'Model version not ready' },
    ]);
  });

  it('is not ready while models of the start are loaded', async () => {
    let starting: string[] | null = ['slow', 'fast'];
    const state = new ServerState(new LiveModels(), () => starting);
    const platform = setUp({ state });
    expect(await answerOf(await platform.get('/v2/health/ready'))).toEqual([
      400,
      { error: 'Server not ready: the models slow, fast are being loaded' },
    ]);
    expect((await platform.get('/v2/health/live')).status).toBe(200);
    expect((await platform.get('/v2/models/m/ready')).status).toBe(200);
    starting = null;
    expect((await platform.get('/v2/health/ready')).status).toBe(200);
  });
});

describe('shared memory', () => {
  it.each(['system', 'cuda'])('of the kind %s has no regions, and clients may clear them', async (kind) => {
    const platform = setUp();
    const path = `/v2/${kind}sharedmemory`;
    expect(await answerOf(await platform.get(`${path}/status`))).toEqual([200, []]);
    expect(await answerOf(await platform.get(`${path}/region/x/status`))).toEqual([
      404,
      { error: `Unable to find ${kind} shared memory region: 'x'` },
    ]);
    for (const rest of ['/unregister', '/region/x/unregister'])
      expect(await answerOf(await platform.post(`${path}${rest}`, ''))).toEqual([200, null]);
    const [status, body] = await answerOf(await platform.post(`${path}/region/x/register`, { key: '/x' }));
    expect([status, body.error]).toEqual([501, expect.stringContaining(`no ${kind} shared memory`)]);
  });
});

describe('the repository', () => {
  it('is told what to load and unload', async () => {
    const platform = setUp({ allowsUpload: true });
    const path = '/v2/repository/models/m';
    const parameters = { config: '{}', 'file:1/model.onnx': 'AAEC' };
    expect(await answerOf(await platform.post(`${path}/load`, { parameters }))).toEqual([
      200,
      { endpoint: 'm' },
    ]);
    expect((await platform.post(`${path}/load`, '')).status).toBe(200);
    const unload = { parameters: { unload_dependents: true } };
    expect((await platform.post(`${path}/unload`, unload)).status).toBe(200);
    expect(platform.repository.commands).toEqual([
      ['load', 'm', { config: '{}', files: new Map([['1/model.onnx', Buffer.from([0, 1, 2])]]) }],
      ['load', 'm', {}],
      ['unload', 'm', { unloadDependents: true }],
    ]);
  });

  it('takes no configuration from clients, unless it is told to', async () => {
    const platform = setUp();
    for (const parameters of [{ config: '{}' }, { config: '{}', 'file:1/x': 'AA==' }]) {
      const response = await platform.post('/v2/repository/models/m/load', { parameters });
      expect(await answerOf(response)).toEqual([
        400,
        { error: expect.stringContaining('--allow-model-upload') },
      ]);
    }
    expect(platform.repository.commands).toEqual([]);
  });

  it.each(['../x', '/etc/x', 'a/../../x', 'a//b', '.', 'a\\b'])('takes no file %s', async (path) => {
    const platform = setUp({ allowsUpload: true });
    const parameters = { config: '{}', [`file:${path}`]: 'AA==' };
    expect((await platform.post('/v2/repository/models/m/load', { parameters })).status).toBe(400);
    expect(platform.repository.commands).toEqual([]);
  });

  it('is changed by admins alone where there are several keys', async () => {
    const apiKeys = new ApiKeys([
      { name: 'ali', key: 'one', weight: 1 },
      { name: 'root', key: 'two', weight: 1, admin: true },
    ]);
    const platform = setUp({ apiKeys });
    const send = (path: string, key: string) => platform.post(path, '', { headers: { 'x-api-key': key } });
    for (const command of ['load', 'unload']) {
      expect((await send(`/v2/repository/models/m/${command}`, 'one')).status).toBe(403);
    }
    expect(platform.repository.commands).toEqual([]);
    expect((await send('/v2/repository/index', 'one')).status).toBe(200);
    expect((await send('/v2/repository/models/m/load', 'two')).status).toBe(200);
  });

  it.each([
    ['/v2/repository/index', { ready: 1 }],
    ['/v2/repository/index', '{'],
    ['/v2/repository/models/m/load', { parameters: 5 }],
    ['/v2/repository/models/m/load', { parameters: { config: 5 } }],
    ['/v2/repository/models/m/unload', { parameters: { unload_dependents: 'yes' } }],
    ['/v2/repository/index', '['.repeat(1000)],
    ['/v2/repository/index', [null, null]],
    ['/v2/repository/index', { raedy: true }],
    ['/v2/repository/models/m/load', { config: '{}' }],
    ['/v2/repository/models/m/load', { parameters: [null] }],
    ['/v2/repository/models/m/load', { parameters: { a: { b: 1 } } }],
    ['/v2/repository/models/m/load', { parameters: { a: null } }],
    ['/v2/repository/models/m/unload', { parameters: [null, null] }],
    ['/v2/repository/models/m/unload', { unload_dependents: true }],
    ['/v2/repository/models/m/unload', { parameters: { unload_dependants: true } }],
  ])('refuses %s %j', async (path, body) => {
    const platform = setUp();
    expect(await answerOf(await platform.post(path, body))).toEqual([
      400,
      { error: expect.stringMatching(/\S/) },
    ]);
    expect(platform.repository.commands).toEqual([]);
  });

  it.each([
    [
      'load',
      { config: '{}' },
      "the request has a field 'config', which is unknown: 'parameters' may be meant",
    ],
    [
      'unload',
      { parameters: { unload_dependants: true } },
      "'parameters' has a field 'unload_dependants', which is unknown: 'unload_dependents' may be meant",
    ],
    ['load', { parameters: { a: [1] } }, "parameter 'a' is no string, number or boolean"],
  ])('names what it does not know of a %s: %j', async (command, body, error) => {
    const response = await setUp().post(`/v2/repository/models/m/${command}`, body);
    expect(await answerOf(response)).toEqual([400, { error }]);
  });

  it.each([
    ['/v2/repository/index', {}],
    ['/v2/repository/index', { ready: null }],
    ['/v2/repository/models/m/load', { parameters: null }],
    ['/v2/repository/models/m/unload', { parameters: { unload_dependents: null } }],
    ['/v2/repository/models/m/unload', { parameters: null }],
  ])('takes null for what is not given: %s %j', async (path, body) => {
    expect((await setUp().post(path, body)).status).toBe(200);
  });
});

describe('without a platform', () => {
  it('there is nothing under /v2', async () => {
    const { app } = fakePlatform([], { platform: null });
    const response = await app.request('/v2/models/m');
    expect(await answerOf(response)).toEqual([404, { error: 'Not Found' }]);
  });
});

describe('what is not there', () => {
  it.each([
    ['GET', '/v2/models', 404],
    ['GET', '/v2/models/m/versions', 404],
    ['GET', '/v2/models/m/versions/-1', 404],
    ['GET', '/v2/models/m/nope', 404],
    ['GET', '/v2/models/m/versions/9/stats', 400],
    ['DELETE', '/v2/models/m', 405],
    ['PUT', '/v2/models/m/infer', 405],
    ['GET', '/v2/models/%zz', 404],
    ['GET', '/v2/models/__proto__', 404],
    ['GET', '/v2/models/constructor/config', 404],
  ])('%s %s is %i, in the form of the protocol', async (method, path, status) => {
    const response = await setUp().app.request(path, { method });
    expect(await answerOf(response)).toEqual([status, { error: expect.stringMatching(/\S/) }]);
  });
});

describe('the description of the API', () => {
  it('has the routes of the protocol under a tag of their own', async () => {
    const response = await setUp().get('/openapi.json');
    const document = (await response.json()) as {
      paths: Record<
        string,
        Record<string, { tags: string[]; operationId: string; security: unknown[]; responses: object }>
      >;
    };
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })),
    );
    const ours = operations.filter(({ path }) => isOfProtocol(path));
    expect(ours.map(({ name }) => name).sort()).toEqual(
      KSERVE_ROUTES.map(({ method, path }) => `${method} ${path}`).sort(),
    );
    for (const { path, operation } of ours) {
      expect(operation.tags).toEqual(['Inference']);
      expect(operation.security.length > 0).toBe(!path.startsWith('/v2/health/'));
    }
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
    // A model may still be loaded, and a socket is refused by a server that is shutting down.
    const withUnavailable = ours.flatMap(({ name, operation }) =>
      name.startsWith('get ') && '503' in operation.responses ? [name] : [],
    );
    expect(withUnavailable.sort()).toEqual([
      'get /models/infer',
      'get /v2/models/{model}',
      'get /v2/models/{model}/config',
      'get /v2/models/{model}/infer',
      'get /v2/models/{model}/versions/{version}',
      'get /v2/models/{model}/versions/{version}/config',
      'get /v2/models/{model}/versions/{version}/infer',
    ]);
    expect(Object.keys(document.paths['/health']!.get!.responses)).toEqual(['200', '403', '404', '503']);
    const { paths } = (await (
      await fakePlatform([], { platform: null }).get('/openapi.json')
    ).json()) as typeof document;
    expect(Object.keys(paths).filter((path) => path.startsWith('/v2'))).toEqual(['/v2/embed', '/v2/rerank']);
  });
});
