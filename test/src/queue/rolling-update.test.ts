import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { QueueNames } from '../../../cluster/nats/names.js';
import { freePort } from '../../../tools/support/free-port.js';
import { NatsProcess } from '../../../tools/support/queue/nats-process.js';
import { until } from '../../../tools/support/queue/queue-lab.js';
import { readDocument } from '../../support/documents.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type Manifest, manifestsOf } from '../../support/kubernetes.js';
import { cliPath, type Ended, runCli, spawnCli, testCacheDir } from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

// What Kubernetes does to the pods of deploy/kubernetes/queue in a rolling update, done to processes of this machine: their options are those of
// the manifests, with other addresses, files and a small model.

const ROOT = 'deploy/kubernetes/queue/base';
const workloadOf = (file: string, name: string): Manifest =>
  manifestsOf(`${ROOT}/${file}.yaml`).find(
    ({ kind, metadata }) => ['Deployment', 'StatefulSet'].includes(kind) && metadata.name === name,
  );
const GATEWAY = workloadOf('gateway', 'skein-gateway');
const WORKER = workloadOf('workers', 'skein-worker');
const PROMPTS = ['Once', 'Tell me of', 'The river', 'A goose'];
const KEY = 'sk-rolling';

/** A pod: a process, and how Kubernetes asks it. */
interface Pod {
  name: string;
  url: string;
  child: ReturnType<typeof spawnCli>['child'];
  ended: Promise<Ended>;
  probes: Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', { httpGet: { path: string } }>;
  graceSeconds: number;
}

describeWithNats('a rolling update of workers and gateways', () => {
  const folder = temporaryFolder('skein-rolling');
  const pods = new Set<Pod>();
  let nats: NatsProcess;
  let monitor: string;

  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  /** Starts what a pod template says, on a port of its own. */
  const startPod = async (workload: Manifest, name: string): Promise<Pod> => {
    const { containers, terminationGracePeriodSeconds: graceSeconds } = workload.spec.template.spec;
    const [container] = containers;
    const port = String(await freePort());
    const said: Record<string, string> = Object.fromEntries(
      container.env.map((one: Manifest) => [one.name, one.value]),
    );
    const isGateway = container.args[0] === 'gateway';
    const { SKEIN_MODEL: _, SKEIN_API_KEY_FILE: __, ...kept } = said;
    const environment = {
      ...kept,
      ...(isGateway
        ? {
            SKEIN_PORT: port,
            SKEIN_API_KEY_FILE: join(folder, 'keys.yaml'),
            SKEIN_CACHE_SECRET_FILE: join(folder, 'cache-secret'),
          }
        : { SKEIN_HEALTH_PORT: port, SKEIN_THREADS: '1', SKEIN_KV_CACHE_TOKENS: '4096' }),
      SKEIN_NATS: nats.url,
      SKEIN_NATS_PASSWORD_FILE: join(folder, said.SKEIN_NATS_USER!),
      SKEIN_CACHE_DIR: testCacheDir,
      SKEIN_LOG_LEVEL: 'warn',
    };
    const { child, ended } = spawnCli([cliPath, ...container.args], environment);
    const { startupProbe, readinessProbe, livenessProbe } = container;
    const probes = { startupProbe, readinessProbe, livenessProbe };
    const pod = { name, url: `http://127.0.0.1:${port}`, child, ended, probes, graceSeconds };
    pods.add(pod);
    for (const probe of ['startupProbe', 'readinessProbe'] as const) {
      await until(`the ${probe} of ${name}`, async () => {
        if (child.exitCode !== null) throw new Error(`${name} has ended: ${(await ended).stderr}`);
        return (await statusOf(pod, probe)) === 200;
      });
    }
    return pod;
  };

  const statusOf = ({ url, probes }: Pod, probe: keyof Pod['probes']): Promise<number | null> =>
    fetch(url + probes[probe].httpGet.path).then(
      ({ status }) => status,
      () => null,
    );

  /** Ends a pod as Kubernetes does: SIGTERM, and SIGKILL after the grace, which must not be needed. */
  const endPod = async (pod: Pod): Promise<void> => {
    pods.delete(pod);
    pod.child.kill('SIGTERM');
    const timer = setTimeout(() => pod.child.kill('SIGKILL'), 1000 * pod.graceSeconds);
    const { code, signal, stderr } = await pod.ended;
    clearTimeout(timer);
    expect({ name: pod.name, code, signal }, stderr).toEqual({ name: pod.name, code: 0, signal: null });
  };

  beforeAll(async () => {
    // The store is where the lab wants it.
    file('nats.conf', readDocument(`${ROOT}/nats.conf`).replace('store_dir: /data', ''));
    file('passwords.conf', 'GATEWAY_PASSWORD: "1e5"\nWORKER_PASSWORD: "sesame"\n');
    file('gateway', '1e5\n');
    file('worker', 'sesame\n');
    file('keys.yaml', `[{ name: test, key: ${KEY} }]`);
    const port = await freePort();
    monitor = `http://127.0.0.1:${port}`;
    nats = await NatsProcess.start(testNats!, ['-c', join(folder, 'nats.conf'), '-m', String(port)]);
  });
  afterAll(async () => {
    for (const { child, ended } of pods) {
      child.kill('SIGKILL');
      await ended;
    }
    await nats?.close();
  });

  it('loses no token and refuses no client', async () => {
    let workers = await Promise.all([0, 1].map((index) => startPod(WORKER, `worker-${index}`)));
    /** Gateways that the Service sends clients to. */
    let endpoints = await Promise.all([0, 1].map((index) => startPod(GATEWAY, `gateway-${index}`)));
    let turn = 0;
    const ask = async (index: number): Promise<string> => {
      turn += 1;
      const { url } = endpoints[turn % endpoints.length]!;
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });
      const stream = await client.completions.create({
        ...{ model: 'gosling', prompt: PROMPTS[index % PROMPTS.length]!, seed: index, temperature: 1 },
        ...{ max_tokens: 160, stream: true, ignore_eos: true },
      } as OpenAI.CompletionCreateParamsStreaming);
      let text = '';
      for await (const { choices } of stream) text += choices[0]?.text ?? '';
      return text;
    };
    const NUM_CLIENTS = 3;
    const undisturbed = await Promise.all(Array.from({ length: NUM_CLIENTS }, (_, index) => ask(index)));
    for (const text of undisturbed) expect(text.length).toBeGreaterThan(150);

    let isOver = false;
    const numAnswers = Array.from({ length: NUM_CLIENTS }, () => 0);
    const clients = numAnswers.map(async (_, index) => {
      while (!isOver) {
        expect(await ask(index)).toBe(undisturbed[index]);
        numAnswers[index]! += 1;
      }
    });
    const load = Promise.all(clients);
    const untilLoaded = () => {
      const before = [...numAnswers];
      return until('an answer of each client', () =>
        numAnswers.every((count, index) => count > before[index]!),
      );
    };
    const update = async () => {
      // A StatefulSet: the last first, and each new one is there before the next old one is asked to end.
      for (const index of [1, 0]) {
        await untilLoaded();
        await endPod(workers[index]!);
        const fresh = await startPod(WORKER, `worker-${index}, new`);
        workers = workers.map((old, at) => (at === index ? fresh : old));
      }
      // A Deployment with maxSurge 1 and maxUnavailable 0.
      expect(GATEWAY.spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
      for (const old of endpoints) {
        const fresh = await startPod(GATEWAY, `${old.name}, new`);
        const models = await fetch(`${fresh.url}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } });
        expect(await models.json()).toMatchObject({ data: [{ id: 'gosling' }] });
        endpoints = [...endpoints.filter((one) => one !== old), fresh];
        await untilLoaded();
        await endPod(old);
      }
      await untilLoaded();
      isOver = true;
    };
    await Promise.all([update(), load]);
    await checkScalers(monitor, workers[0]!);
    for (const pod of [...endpoints, ...workers]) await endPod(pod);
  });

  it('finds bad ports at the start of a worker', async () => {
    const args = ['work', '--nats', nats.url, '--cache-dir', testCacheDir, '--health-port'];
    const bad = await runCli([...args, '70000']);
    expect(bad).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--health-port is 70000; it must be'),
    });
    const { port } = new URL(monitor);
    const taken = await runCli([...args, port]);
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`Port ${port} on 127.0.0.1 is in use; choose another with --health-port`);
  });
});

/** What KEDA's scaler for JetStream reads of the NATS server is there, under the names of the manifest, and so is what a worker says. */
async function checkScalers(monitor: string, worker: Pod): Promise<void> {
  const health: Manifest = await (await fetch(`${worker.url}/health`)).json();
  expect(health).toMatchObject({ status: 'ready', model: 'gosling', requests: expect.any(Number) });
  const { account_details: accounts }: Manifest = await (
    await fetch(`${monitor}/jsz?acc=$G&consumers=true&config=true`)
  ).json();
  const names = new QueueNames('skein');
  const [scaled] = manifestsOf('deploy/kubernetes/queue/overlays/autoscaling-by-nats/workers.yaml');
  expect(accounts[0].name).toBe(scaled.spec.triggers[0].metadata.account);
  const stream = accounts[0].stream_detail.find(({ name }: Manifest) => name === names.stream);
  const consumer = names.consumer({ model: 'gosling', fingerprint: health.pool });
  const found = stream.consumer_detail.find(({ name }: Manifest) => name === consumer);
  expect(found).toMatchObject({ num_pending: 0, num_ack_pending: expect.any(Number) });
  for (const path of ['/healthz', '/healthz?js-server-only=true', '/healthz?js-enabled-only=true']) {
    expect((await fetch(monitor + path)).status, path).toBe(200);
  }
  const metrics = await (await fetch(`${worker.url}/metrics`)).text();
  expect(
    Number(/^skein:iterations_total\{model_name="gosling",engine="0"\} (\d+)$/m.exec(metrics)![1]),
  ).toBeGreaterThan(0);
}
