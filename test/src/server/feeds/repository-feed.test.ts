import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ModelsEvent } from '../../../../src/server/feeds/models-event.js';
import { RepositoryFeed } from '../../../../src/server/feeds/repository-feed.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import type { IndexRow } from '../../../../src/serving/model-repository.js';
import { say, toyServer } from '../../support/toy-server.js';
import { FakeModel, fakeConfig } from '../kserve/support/fake-models.js';
import { fakePlatform } from '../kserve/support/fake-platform.js';

const parse = (event: string) => {
  const [, data] = /^event: models\ndata: (.*)\n\n$/.exec(event)!;
  return JSON.parse(data!) as ModelsEvent;
};

/** A repository that counts how often it is read. */
class Source {
  reads = 0;
  list: IndexRow[] = [{ name: 'm', version: '1', state: 'LOADING' }];
  rows = () => {
    this.reads++;
    return this.list;
  };
  loaded = () => [];
}

describe('the feed of a repository', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('reads nothing while nobody listens, and once for all who do', () => {
    const source = new Source();
    const feed = new RepositoryFeed(source);
    vi.advanceTimersByTime(60_000);
    expect([source.reads, vi.getTimerCount()]).toEqual([0, 0]);
    const heard: string[][] = [[], []];
    const leave = heard.map((events) => feed.subscribe((event) => events.push(event)));
    // Both learn at once how things are.
    expect(heard.map((events) => events.length)).toEqual([1, 1]);
    expect(source.reads).toBe(1);
    expect(parse(heard[0]![0]!)).toMatchObject({ v: 1, models: 1, rows: [{ name: 'm', state: 'LOADING' }] });
    source.list = [{ name: 'm', version: '1', state: 'READY' }];
    vi.advanceTimersByTime(500);
    expect(source.reads).toBe(2);
    expect(heard[0]![1]).toBe(heard[1]![1]);
    for (const one of leave) one();
    vi.advanceTimersByTime(60_000);
    expect([source.reads, feed.numListeners, vi.getTimerCount()]).toEqual([2, 0, 0]);
  });

  it('sends what has changed, at most twice a second, and else a heartbeat', () => {
    const source = new Source();
    const events: ModelsEvent[] = [];
    const leave = new RepositoryFeed(source).subscribe((event) => events.push(parse(event)));
    vi.advanceTimersByTime(4900);
    expect(events).toHaveLength(1);
    vi.advanceTimersByTime(5100);
    expect(events).toHaveLength(3);
    expect(events[1]!.timeMs - events[0]!.timeMs).toBe(5000);
    for (let i = 0; i < 100; i++) {
      source.list = [{ name: `m${i}` }];
      vi.advanceTimersByTime(100);
    }
    expect(events).toHaveLength(3 + 20);
    expect(events.at(-1)!.rows[0]!.name).toBe('m99');
    leave();
  });

  it('begins anew for who comes when all had left', () => {
    const source = new Source();
    const feed = new RepositoryFeed(source);
    feed.subscribe(() => {})();
    const events: string[] = [];
    const leave = feed.subscribe((event) => events.push(event));
    expect(events).toHaveLength(1);
    leave();
  });
});

describe('GET /stats/models/stream', () => {
  const models = () => [new FakeModel(fakeConfig({ name: 'squares', type: 'TYPE_FP32', dims: [1] }))];
  const firstOf = async (response: Response) => {
    const reader = response.body!.getReader();
    let text = '';
    while (!text.endsWith('\n\n') || !text.includes('event:'))
      text += new TextDecoder().decode((await reader.read()).value);
    await reader.cancel();
    return parse(text.replace(': skein\n\n', ''));
  };

  it('tells of all models of the repository', async () => {
    const response = await fakePlatform(models()).get('/stats/models/stream');
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    expect(await firstOf(response)).toMatchObject({
      rows: [{ name: 'squares', version: '1', state: 'READY' }],
    });
  });

  it('tells of none where the server has no repository', async () => {
    expect(await firstOf(await toyServer(() => say('x')).get('/stats/models/stream'))).toMatchObject({
      rows: [],
    });
  });

  it('needs a key where the server does, of any caller', async () => {
    const apiKeys = new ApiKeys([
      { name: 'a', key: 'ka', weight: 1, admin: true },
      { name: 'b', key: 'kb', weight: 1 },
    ]);
    const toy = fakePlatform(models(), { apiKeys });
    expect((await toy.get('/stats/models/stream')).status).toBe(401);
    expect((await toy.get('/stats/models/stream', { headers: { 'x-api-key': 'no' } })).status).toBe(401);
    const told = await toy.get('/stats/models/stream', { headers: { 'x-api-key': 'kb' } });
    expect((await firstOf(told)).models).toBe(1);
  });

  it('ends when the server drains, and is refused after that', async () => {
    const toy = fakePlatform(models());
    const response = await toy.get('/stats/models/stream');
    toy.state.drain();
    expect(await response.text()).toContain('event: models');
    expect((await toy.get('/stats/models/stream')).status).toBe(503);
  });
});
