import { describe, expect, it } from 'vitest';
import { TraceDecisions } from '../../../../src/server/tracing/trace-settings.js';
import { Tracing } from '../../../../src/server/tracing/tracing.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';
import { fakePlatform } from '../kserve/support/fake-platform.js';

function setUp(apiKeys?: ApiKeys, isTracing = true) {
  const decisions = new TraceDecisions({ isOn: true, rate: 10, count: -1 });
  const source = { decisionOf: () => 'dropped' as const, begin: () => null as never, close: async () => {} };
  const tracing = isTracing ? new Tracing(source, decisions) : null;
  const model = new FakeModel(fakeConfig({ name: 'm', type: 'TYPE_INT32', dims: [-1] }));
  return fakePlatform([model], { tracing, ...(apiKeys && { apiKeys }) });
}
const answerOf = async (response: Response) => [response.status, await response.json()];
const SERVER = '/v2/trace/setting';
const MODEL = '/v2/models/m/trace/setting';
const IS = { trace_level: ['TIMESTAMPS'], trace_rate: '10', trace_count: '-1', trace_mode: 'opentelemetry' };

describe('trace settings', () => {
  it('are told, and changed for the server and for a model', async () => {
    const platform = setUp();
    expect(await answerOf(await platform.get(SERVER))).toEqual([200, IS]);
    const ofModel = { ...IS, trace_rate: '3', trace_count: '7' };
    const change = { trace_rate: '3', trace_count: '7' };
    expect(await answerOf(await platform.post(MODEL, { ...change, trace_rat: '1' }))).toEqual([
      400,
      { error: expect.stringContaining("'trace_rat' is no setting; there are trace_level") },
    ]);
    expect(await answerOf(await platform.post(MODEL, change))).toEqual([200, ofModel]);
    expect(await answerOf(await platform.get(SERVER))).toEqual([200, IS]);
    const off = { ...IS, trace_level: ['OFF'] };
    expect(await answerOf(await platform.post(SERVER, { trace_level: ['OFF'] }))).toEqual([200, off]);
    expect(await answerOf(await platform.get(MODEL))).toEqual([200, { ...ofModel, trace_level: ['OFF'] }]);
    const given = { trace_level: null, trace_rate: null, trace_count: null };
    await platform.post(SERVER, given);
    expect(await answerOf(await platform.post(MODEL, given))).toEqual([200, IS]);
    expect(await answerOf(await platform.post(MODEL, ''))).toEqual([200, IS]);
    expect((await platform.get('/v2/models/nope/trace/setting')).status).toBe(400);
  });

  it.each([
    [{ trace_rate: 'abc' }, 400, "Unable to parse 'trace_rate', got: abc"],
    [{ trace_rate: 5 }, 400, "'trace_rate' is to be a number in a text"],
    [{ trace_rate: '99999999999' }, 400, "Unable to parse 'trace_rate', value is out of range"],
    [{ trace_count: '-2' }, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"],
    [{ trace_level: 'OFF' }, 400, "'trace_level' is to be a list"],
    [{ trace_level: ['OFF', 'TIMESTAMPS'] }, 400, "Expect only one trace level 'OFF' is specified"],
    [{ trace_level: ['MAX'] }, 400, "a level of 'trace_level' is to be OFF or TIMESTAMPS"],
    [{ trace_level: ['TENSORS'] }, 501, "'trace_level' cannot be TENSORS: traces hold no data"],
    [{ trace_file: '/tmp/x' }, 501, 'trace file location can not be updated through network protocol'],
    [{ log_frequency: '5' }, 501, "'log_frequency' cannot be changed"],
    [{ trace_mode: 'triton' }, 501, "'trace_mode' cannot be changed"],
  ])('are refused by name, and then none is changed: %j', async (change, status, error) => {
    const platform = setUp();
    const answer = await answerOf(await platform.post(SERVER, { trace_count: '5', ...change }));
    expect(answer).toEqual([status, { error: expect.stringContaining(error) }]);
    expect(await answerOf(await platform.get(SERVER))).toEqual([200, IS]);
  });

  it('are changed by admins alone where there are several keys', async () => {
    const keys = new ApiKeys([
      { name: 'ali', key: 'a', weight: 1 },
      { name: 'boss', key: 'b', weight: 1, admin: true },
    ]);
    const platform = setUp(keys);
    const as = (key: string) => platform.post(SERVER, { trace_rate: '2' }, { headers: { 'x-api-key': key } });
    expect((await as('a')).status).toBe(403);
    expect((await as('b')).status).toBe(200);
  });

  it('stay as they are where nothing is traced', async () => {
    const platform = setUp(undefined, false);
    for (const path of [SERVER, MODEL]) {
      expect((await platform.post(path, { trace_level: ['OFF'], trace_rate: null })).status).toBe(200);
      const answer = await answerOf(await platform.post(path, { trace_level: ['TIMESTAMPS'] }));
      expect(answer).toEqual([501, { error: expect.stringContaining("'trace_level' cannot be changed") }]);
    }
  });
});
