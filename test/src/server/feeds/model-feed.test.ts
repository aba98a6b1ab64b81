import { describe, expect, it } from 'vitest';
import type { Formation, FormationListener } from '../../../../callbacks/formation.js';
import { ModelFeed } from '../../../../src/server/feeds/model-feed.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { say, toyServer } from '../../support/toy-server.js';

const formation = (iteration: number): Formation => ({
  v: 1,
  timeMs: 1,
  iteration,
  requests: [[2, 'b', 2, 40, 4, 4, 4, 1, 8, 1, 0, 0, 0, 10]],
  queued: 0,
  ended: [[1, 'a', 'stop', -3, 50, 4, 2, 0]],
  steps: [[2, 0, -30, -25, 0, 4]],
  totals: {
    iterations: iteration,
    iterationMs: 1,
    executorMs: 1,
    contextTokens: 8,
    generatedTokens: 3,
    scheduledRequests: 4,
    completedRequests: 1,
    pauses: 0,
    emptyGenerationSlots: 0,
  },
  longestIterationMs: 1,
  latency: { firstToken: null, interToken: null },
  blocks: { count: 2, tokensPerBlock: 8, runs: [2, -1] },
});

/** An engine that does what the test says, and counts who watches. */
class Engine {
  watchers = 0;
  iteration = 0;
  tell: FormationListener = () => {};
  step: () => void = () => {};
  statsAsked = 0;

  onStats = (listener: () => void) => {
    this.watchers++;
    this.step = () => {
      this.iteration++;
      listener();
    };
    return () => this.watchers--;
  };

  statsJson = () => {
    this.statsAsked++;
    return `{"Iteration Counter":${this.iteration}}`;
  };

  watchFormation = (listener: FormationListener) => {
    this.watchers++;
    this.tell = listener;
    return () => this.watchers--;
  };
}

const parse = (event: string) => {
  const [, type, data] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(event)!;
  return [type, JSON.parse(data!)] as const;
};

describe('the feed of a model', () => {
  it('asks nothing of the engine while nobody listens, and once for all who do', () => {
    const engine = new Engine();
    const feed = new ModelFeed('m', engine);
    expect(engine.watchers).toBe(0);
    const heard: string[][] = [[], []];
    const leave = heard.map((events) => feed.subscribe((event) => events.push(event)));
    expect(engine.watchers).toBe(2);
    engine.tell(formation(3));
    engine.step();
    expect(heard[0]!.map((event) => parse(event)[0])).toEqual(['formation', 'stats']);
    expect(heard[0]).toEqual(heard[1]);
    expect(parse(heard[0]![0]!)[1]).toEqual({ model: 'm', ...formation(3) });
    expect(parse(heard[0]![1]!)[1]).toEqual({ model: 'm', 'Iteration Counter': 1 });
    expect(engine.statsAsked).toBe(1);
    leave[0]!();
    expect(engine.watchers).toBe(2);
    leave[1]!();
    expect([engine.watchers, feed.numListeners]).toEqual([0, 0]);
  });

  it('leaves out the names of requests where the listener may not know them, and nothing else', () => {
    const engine = new Engine();
    const feed = new ModelFeed('m', engine);
    const heard: string[][] = [[], [], []];
    const leave = heard.map((events, index) =>
      feed.subscribe((event) => events.push(event), { showsLabels: index === 0 }),
    );
    engine.tell(formation(3));
    // This subscriber comes later, while the formation is on its way.
    const late: string[] = [];
    leave.push(feed.subscribe((event) => late.push(event), { showsLabels: false }));
    engine.step();
    expect(parse(heard[0]![0]!)[1]).toEqual({ model: 'm', ...formation(3) });
    const { requests, ended, ...rest } = formation(3);
    const blank = <T extends readonly unknown[]>(rows: readonly T[]) => rows.map((row) => row.with(1, ''));
    const anonymous = { model: 'm', ...rest, requests: blank(requests), ended: blank(ended) };
    for (const events of [heard[1]!, late]) expect(parse(events[0]!)[1]).toEqual(anonymous);
    expect(heard[1]).toEqual(heard[2]);
    // Statistics have no names.
    expect(heard[1]![1]).toBe(heard[0]![1]);
    for (const one of leave) one();
    expect(engine.watchers).toBe(0);
  });

  it('tells the first iteration at once, then the latest of many', async () => {
    const engine = new Engine();
    const events: string[] = [];
    const leave = new ModelFeed('m', engine, { statsIntervalMs: 20 }).subscribe((event) =>
      events.push(event),
    );
    for (let i = 0; i < 50; i++) engine.step();
    expect(events).toHaveLength(1);
    await expect.poll(() => events.length, { interval: 5 }).toBe(2);
    expect(events.map((event) => parse(event)[1]['Iteration Counter'])).toEqual([1, 50]);
    leave();
  });

  it('forgets latencies that are older than the time over which they count', async () => {
    const engine = new Engine();
    const events: string[] = [];
    const leave = new ModelFeed('m', engine, { heartbeatMs: 10 }).subscribe((event) => events.push(event));
    const one = { count: 1, p50: 2, p90: 2, p99: 2 };
    const latency = { firstToken: one, interToken: one };
    const repeated = async (timeMs: number) => {
      events.length = 0;
      engine.tell({ ...formation(3), timeMs, latency });
      await expect.poll(() => events.length, { interval: 5 }).toBeGreaterThan(1);
      return events.slice(0, 2).map((event) => parse(event)[1].latency);
    };
    expect(await repeated(Date.now())).toEqual([latency, latency]);
    expect(await repeated(1)).toEqual([latency, { firstToken: null, interToken: null }]);
    leave();
  });

  it('repeats what is in flight as a heartbeat, and what ended only once; who comes later gets it at once', async () => {
    const engine = new Engine();
    const feed = new ModelFeed('m', engine, { heartbeatMs: 10 });
    const events: string[] = [];
    const leave = feed.subscribe((event) => events.push(event));
    engine.tell(formation(3));
    await expect.poll(() => events.length, { interval: 5 }).toBeGreaterThan(2);
    const later: string[] = [];
    feed.subscribe((event) => later.push(event))();
    expect(parse(later[0]!)[1]).toMatchObject({ iteration: 3 });
    leave();
    expect(parse(events[0]!)[1].ended).toHaveLength(1);
    expect(parse(events[1]!)[1]).toMatchObject({ iteration: 3, ended: [], steps: [] });
    const [first, second] = events.map((event) => parse(event)[1]);
    expect(second.timeMs).toBeGreaterThan(1);
    // It has grown older by as much.
    expect(second.requests[0][3] - first.requests[0][3]).toBe(second.timeMs - first.timeMs);
  });
});

describe('the routes', () => {
  it('GET /stats is the JSON of the latest iteration with the name of its model', async () => {
    const toy = toyServer(() => say('x'));
    expect(await (await toy.get('/stats')).json()).toEqual({ model: 'toy', 'Iteration Counter': 0 });
    expect((await toy.get('/stats?model=toy')).status).toBe(200);
    expect((await toy.get('/stats?model=other')).status).toBe(404);
    expect((await toy.get('/stats?x=1')).status).toBe(400);
  });

  it('GET /stats/stream has the names for admins alone', async () => {
    const keys = (admin?: boolean) => [
      { name: 'a', key: 'ka', weight: 1, admin },
      { name: 'b', key: 'kb', weight: 1 },
    ];
    const labelsFor = async (apiKeys: ApiKeys, key: string) => {
      const engine = new Engine();
      const toy = toyServer(() => say('x'), { model: { watch: engine }, apiKeys });
      const stream = await toy.get('/stats/stream', { headers: { 'x-api-key': key } });
      engine.tell(formation(1));
      toy.state.drain();
      const { requests, ended } = parse((await stream.text()).replace(': skein\n\n', ''))[1];
      return [requests[0][1], ended[0][1]];
    };
    expect(await labelsFor(new ApiKeys([]), '')).toEqual(['b', 'a']);
    expect(await labelsFor(new ApiKeys(keys().slice(0, 1)), 'ka')).toEqual(['b', 'a']);
    expect(await labelsFor(new ApiKeys(keys()), 'ka')).toEqual(['', '']);
    expect(await labelsFor(new ApiKeys(keys(true)), 'ka')).toEqual(['b', 'a']);
    expect(await labelsFor(new ApiKeys(keys(true)), 'kb')).toEqual(['', '']);
  });

  it('GET /stats/stream ends when the server drains and when the listener leaves, and is refused after that', async () => {
    const engine = new Engine();
    const toy = toyServer(() => say('x'), { model: { watch: engine } });
    const first = await toy.get('/stats/stream');
    expect(first.headers.get('content-type')).toContain('text/event-stream');
    const reader = first.body!.getReader();
    const next = async () => new TextDecoder().decode((await reader.read()).value);
    expect(await next()).toBe(': skein\n\n');
    engine.tell(formation(1));
    expect(parse(await next())[0]).toBe('formation');
    await reader.cancel();
    expect(engine.watchers).toBe(0);
    const second = await toy.get('/stats/stream?model=toy');
    engine.step();
    toy.state.drain();
    expect(await second.text()).toContain('event: stats');
    expect(engine.watchers).toBe(0);
    expect((await toy.get('/stats/stream')).status).toBe(503);
  });

  it('a listener that is behind misses events instead of gathering them', async () => {
    const engine = new Engine();
    const eventStream = { highWaterMark: 2000, stallLimitMs: 60_000 };
    const toy = toyServer(() => say('x'), { model: { watch: engine }, eventStream });
    const reader = (await toy.get('/stats/stream')).body!.getReader();
    for (let i = 0; i < 1000; i++) engine.tell(formation(i));
    let bytes = 0;
    const read = async () => {
      bytes += (await reader.read()).value!.length;
    };
    await read();
    while (bytes < 1500) await read();
    expect(bytes).toBeLessThan(4000);
    engine.tell(formation(5000));
    let text = '';
    while (!text.includes('5000')) {
      engine.tell(formation(5000));
      text += new TextDecoder().decode((await reader.read()).value);
    }
    await reader.cancel();
  });
});
