import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  spawnCli,
  start,
  startServer,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
type Any = any;

const ENGINE = ['--threads', '1', '--kv-cache-tokens', '4096'];
const ASKED = { prompt: 'Once', seed: 3, temperature: 1, max_tokens: 24, ignore_eos: true };

const postTo = ({ url }: SkeinProcess, model: string) =>
  fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, ...ASKED }),
  });
const modelsOf = async ({ url }: SkeinProcess): Promise<Any[]> =>
  ((await (await fetch(`${url}/v1/models`)).json()) as Any).data;
const metricOf = async ({ url }: SkeinProcess, series: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? Number.NaN);
};
const LABELS = 'model_name="gosling",engine="0"';

describeWithNats('a model whose last worker has gone', () => {
  const folder = temporaryFolder('skein-zero');
  let lab: QueueLab;
  let gateways: SkeinProcess[] = [];

  /** A gateway on a machine of its own, as far as its folder goes. */
  const startGateway = async (...more: string[]) => {
    const cache = join(folder, `cache${gateways.length}`);
    const options = ['--port', '0', '--cache-dir', cache, '--target-first-token-ms', '60000', ...more];
    const gateway = await start([cliPath, 'gateway', '--nats', lab.nats.url, ...options], {});
    gateways.push(gateway);
    return gateway;
  };
  const kill = async (gateway: SkeinProcess) => {
    gateway.child.kill('SIGKILL');
    await gateway.ended;
    gateways = gateways.filter((one) => one !== gateway);
  };
  const startWorker = () => lab.startWorker([...ENGINE, '--cache-dir', testCacheDir]);
  const kept = async () => {
    const manager = await lab.manager();
    const { state } = await manager.streams.info('KV_SKEIN_MODELS', { subjects_filter: '>' });
    return Object.keys(state.subjects ?? {}).filter((subject) => /\.models\.gosling-/.test(subject));
  };

  beforeAll(async () => {
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
  });
  afterAll(async () => {
    for (const gateway of gateways) await kill(gateway);
    await lab?.close();
  });

  it('is known to a gateway that was started after it, where a request waits for the next worker and is counted', async () => {
    const first = await startGateway();
    const worker = await startWorker();
    await until('the model', async () => (await modelsOf(first)).length > 0);
    expect(await modelsOf(first)).toMatchObject([{ id: 'gosling', workers: 1 }]);
    const direct = await startServer(ENGINE);
    const expected = (await (await postTo(direct, 'gosling')).json()) as Any;
    await direct.stop();
    await until('the record', async () => (await kept()).length === 1);
    await lab.kill(worker);
    await kill(first);

    const second = await startGateway();
    await until('the known model', async () => (await modelsOf(second)).length > 0);
    expect(await modelsOf(second)).toMatchObject([{ id: 'gosling', workers: 0, system_fingerprints: [] }]);
    // Who is not ready is given no requests, and so no worker would ever be started for one.
    await until('a gateway that takes requests', async () => (await fetch(`${second.url}/health`)).ok);
    const health = (await (await fetch(`${second.url}/health`)).json()) as Any;
    expect(health).toMatchObject({ status: 'degraded', reason: 'No worker has the model at present.' });
    expect(await metricOf(second, `vllm:num_requests_waiting{${LABELS}}`)).toBe(0);
    expect(await metricOf(second, `skein:workers{${LABELS},state="ready"}`)).toBe(0);
    expect(await metricOf(second, `skein:desired_workers{${LABELS}}`)).toBe(0);

    const answer = postTo(second, 'gosling');
    await until('the request to wait', async () => {
      return (await metricOf(second, `vllm:num_requests_waiting{${LABELS}}`)) === 1;
    });
    expect(await metricOf(second, `skein:desired_workers{${LABELS}}`)).toBe(1);
    await startWorker();
    const got = (await (await answer).json()) as Any;
    expect(got.choices).toEqual(expected.choices);
    expect(got.system_fingerprint).toBe(expected.system_fingerprint);
    expect(await metricOf(second, `skein:workers{${LABELS},state="ready"}`)).toBe(1);
    // It has reported its load as well.
    await until(
      'the load',
      async () => (await metricOf(second, `skein:worker_loads_total{${LABELS}}`)) === 1,
    );
    expect(await metricOf(second, `skein:workers{${LABELS},state="loading"}`)).toBe(0);
    expect(await metricOf(second, `skein:worker_load_seconds_total{${LABELS}}`)).toBeGreaterThan(0);
    expect(await metricOf(second, `skein:target_ratio{${LABELS},time="first_token"}`)).toBeGreaterThan(0);
  });

  it('is named where it never had a worker: it is listed, wanted and answered once one has come', async () => {
    for (const worker of [...lab.workers]) await lab.kill(worker);
    // Another queue, whose models are unknown.
    const named = ['--known-model', 'gosling', '--nats-prefix', 'other'];
    const gateway = await startGateway(...named);
    await until('a gateway that takes requests', async () => (await fetch(`${gateway.url}/health`)).ok);
    expect(await modelsOf(gateway)).toMatchObject([{ id: 'gosling', workers: 0 }]);
    const wanted = () => metricOf(gateway, `skein:wanted_requests_total{${LABELS}}`);
    expect(await wanted()).toBe(0);
    const early = await postTo(gateway, 'gosling');
    expect([early.status, early.headers.get('retry-after')]).toEqual([503, '10']);
    expect((await fetch(`${gateway.url}/v1/models/gosling`)).status).toBe(200);
    expect((await postTo(gateway, 'goose')).status).toBe(404);
    expect(await wanted()).toBe(1);
    const options = ['work', '--nats', lab.nats.url, '--nats-prefix', 'other', ...ENGINE];
    const worker = spawnCli([cliPath, ...options, '--cache-dir', testCacheDir], {});
    await until('the model', async () => (await modelsOf(gateway))[0].workers === 1);
    expect((await postTo(gateway, 'gosling')).status).toBe(200);
    expect(await modelsOf(gateway)).toHaveLength(1);
    expect(await wanted()).toBe(1);
    worker.child.kill('SIGKILL');
    await worker.ended;
  });

  it('gets an error with Retry-After when none comes, and is forgotten with its record', async () => {
    for (const worker of [...lab.workers]) await lab.kill(worker);
    const gateway = await startGateway('--worker-wait-seconds', '1');
    await until('the known model', async () => (await modelsOf(gateway)).length > 0);
    const late = await postTo(gateway, 'gosling');
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    const manager = await lab.manager();
    const [record] = await kept();
    await manager.streams.purge('KV_SKEIN_MODELS', { filter: record! });
    await until('no model', async () => (await modelsOf(gateway)).length === 0);
    expect((await postTo(gateway, 'gosling')).status).toBe(404);
  });

  it('is known to a gateway that keeps all by itself, by its folder', async () => {
    const cache = join(folder, 'own');
    const own = ['--state', 'local', '--cache-dir', cache];
    const first = await startGateway(...own);
    const worker = await startWorker();
    await until('the model', async () => (await modelsOf(first)).length > 0);
    await lab.kill(worker);
    await first.stop();
    gateways = gateways.filter((one) => one !== first);
    const second = await startGateway(...own);
    await until('the known model', async () => (await modelsOf(second)).length > 0);
    expect(await modelsOf(second)).toMatchObject([{ id: 'gosling', workers: 0 }]);
  });
});
