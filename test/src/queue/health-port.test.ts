import { request } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { HealthPort } from '../../../src/queue/health-port.js';
import { WorkerLife } from '../../../src/queue/worker-life.js';
import type { EngineStatus } from '../../../src/serving/model-state.js';

const METRICS = { contentType: 'text/plain; version=0.0.4', text: async () => 'skein:ranks 1\n' };
const ports: HealthPort[] = [];

async function listen(life: WorkerLife, metrics: typeof METRICS | null = METRICS): Promise<HealthPort> {
  const options = { host: '127.0.0.1', port: 0, allowedHosts: [], report: () => life.report(), metrics };
  const port = await HealthPort.listen(options);
  ports.push(port);
  return port;
}

/** Changes of a connection, reported when `tell` is called. */
function connection(): { nc: Parameters<WorkerLife['follow']>[0]; tell: (type: string) => Promise<void> } {
  const told: string[] = [];
  let wake = () => {};
  async function* status() {
    for (;;) {
      while (told.length > 0) yield { type: told.shift()! };
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  const tell = async (type: string) => {
    told.push(type);
    wake();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { nc: { status } as never, tell };
}

afterEach(async () => {
  for (const port of ports.splice(0)) await port.close();
});

it('says how a worker is, from its start to its end', async () => {
  const life = new WorkerLife('tiny');
  const { url } = await listen(life);
  const health = async () => {
    const answer = await fetch(`${url}/health`);
    return [answer.status, await answer.json()];
  };
  const loading = { status: 'loading', reason: 'the model is being loaded', model: 'tiny', requests: 0 };
  expect(await health()).toEqual([503, loading]);
  const { nc, tell } = connection();
  life.follow(nc);
  expect(await health()).toEqual([503, loading]);
  const worker = { size: 2, isLeaving: false };
  const state: { status: EngineStatus; reason: string | null } = { status: 'ready', reason: null };
  life.begin(worker, { id: 'w1', pool: 'p1', state });
  const ready = { status: 'ready', model: 'tiny', worker: 'w1', pool: 'p1', requests: 2 };
  expect(await health()).toEqual([200, ready]);
  await tell('disconnect');
  expect(await health()).toMatchObject([
    503,
    { status: 'disconnected', reason: 'the NATS server cannot be reached' },
  ]);
  await tell('reconnect');
  expect(await health()).toEqual([200, ready]);
  state.status = 'restarting';
  state.reason = 'The engine has died.';
  expect(await health()).toMatchObject([503, { status: 'restarting', reason: 'The engine has died.' }]);
  state.status = 'ready';
  state.reason = null;
  worker.isLeaving = true;
  expect(await health()).toMatchObject([503, { status: 'draining', requests: 2 }]);
  expect(await (await fetch(`${url}/live`)).json()).toEqual({ status: 'live' });
});

it('has metrics where they are counted, and answers nothing else', async () => {
  const { url } = await listen(new WorkerLife('tiny'));
  const metrics = await fetch(`${url}/metrics?x=1`);
  expect([metrics.status, metrics.headers.get('content-type'), await metrics.text()]).toEqual([
    200,
    METRICS.contentType,
    'skein:ranks 1\n',
  ]);
  const head = await fetch(`${url}/live`, { method: 'HEAD' });
  expect([head.status, await head.text()]).toEqual([200, '']);
  const posted = await fetch(`${url}/health`, { method: 'POST', body: '{}' });
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  const strange = await fetch(`${url}/v1/completions`, { method: 'POST', body: '{}' });
  expect([strange.status, await strange.json()]).toMatchObject([
    404,
    {
      error: {
        message:
          'A worker has no path /v1/completions: it has /live, /health, /metrics; clients ask its gateways.',
      },
    },
  ]);
  const uncounted = await listen(new WorkerLife('tiny'), null);
  expect((await fetch(`${uncounted.url}/metrics`)).status).toBe(404);
});

it('is not reached by a web page under a name of its own', async () => {
  const { url } = await listen(new WorkerLife('tiny'));
  const status = await new Promise((resolve) => {
    request(`${url}/metrics`, { headers: { host: 'evil.example' } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).end();
  });
  expect(status).toBe(403);
});
