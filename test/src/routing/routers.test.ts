import { describe, expect, it } from 'vitest';
import { freePorts } from '../../../tools/support/free-port.js';
import { postJson } from '../../support/post-json.js';
import { metric } from '../support/metrics.js';
import { killGroup, startedPrograms } from '../support/program.js';
import { routingProgram, routingPython } from '../support/routing-python.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';
import { startedServers } from '../support/started-servers.js';

const started = startedServers();
const begin = startedPrograms();

const WORKERS = 3;
const TIMEOUT_MS = 120_000;

/** Servers with the demo model, whose events report what is cached. */
const workers = () =>
  Promise.all(
    Array.from({ length: WORKERS }, () =>
      started(
        startServer([
          ...['--threads', '1', '--kv-events-endpoint', 'tcp://127.0.0.1:*'],
          ...['--kv-events-replay-endpoint', 'tcp://127.0.0.1:*'],
        ]),
      ),
    ),
  );

const story = (name: string) =>
  Array.from({ length: 12 }, (_, index) => `The ${name} number ${index} flew over the lake.`).join(' ');

async function complete(url: string, prompt: string, more: object = {}): Promise<string> {
  const body = { model: 'gosling', prompt, max_tokens: 8, temperature: 0, ignore_eos: true, ...more };
  const response = await postJson(`${url}/v1/completions`, body, {});
  expect([response.status, response.status === 200 ? '' : await response.clone().text()]).toEqual([200, '']);
  return ((await response.json()) as { choices: { text: string }[] }).choices[0]!.text;
}

async function streamed(url: string, prompt: string): Promise<string> {
  const body = { model: 'gosling', prompt, max_tokens: 8, temperature: 0, ignore_eos: true, stream: true };
  const response = await postJson(`${url}/v1/completions`, body, {});
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: {'));
  expect(events.length).toBeGreaterThan(1);
  return events
    .map((event) => JSON.parse(event.slice(6)) as { choices: { text: string }[] })
    .map(({ choices }) => choices[0]?.text ?? '')
    .join('');
}

/** Prompt tokens that each worker was asked for, and those that it has found in its cache. */
const asked = (servers: readonly SkeinProcess[]) =>
  Promise.all(servers.map(({ url }) => metric(url, 'prefix_cache_queries_total')));
const hits = (servers: readonly SkeinProcess[]) =>
  Promise.all(servers.map(({ url }) => metric(url, 'prefix_cache_hits_total')));

async function untilReady(url: string, output: () => string): Promise<void> {
  const isReady = async () => {
    const response = await fetch(`${url}/health`).catch(() => null);
    return response?.ok === true;
  };
  await expect.poll(isReady, { timeout: TIMEOUT_MS, message: output() }).toBe(true);
}

describe.skipIf(routingPython === null)('behind a router', () => {
  it('vllm-router sends a request where events say that its prompt is cached', async () => {
    const servers = await workers();
    const [port, metricsPort] = await freePorts(2);
    const addresses = servers.map(({ url, output }) => {
      const [, events, replay] = /events of the KV cache at (\S+), lost ones at (\S+)/.exec(output().stdout)!;
      return { url, events: events!, replay: replay! };
    });
    const alone = await complete(addresses[1]!.url, story('goose'));
    const { child, output } = begin(routingProgram('vllm-router'), [
      ...['--host', '127.0.0.1', '--port', String(port), '--prometheus-port', String(metricsPort)],
      ...['--policy', 'kv_aware', '--kv-event-block-size', '32', '--kv-event-model', 'gosling'],
      ...['--worker-urls', ...addresses.map(({ url }) => url)],
      ...addresses.flatMap(({ url, events }) => ['--kv-event-source', `${url}=${events}`]),
      ...addresses.flatMap(({ url, replay }) => ['--kv-event-replay-source', `${url}=${replay}`]),
      ...['--health-check-interval-secs', '1', '--log-level', 'debug'],
    ]);
    const url = `http://127.0.0.1:${port}`;
    await untilReady(url, output);
    // What the second one has cached was published before the router came; the third one publishes it now.
    // Neither would be chosen otherwise: the router takes the first of equals.
    const prompt = story('swan');
    await complete(addresses[2]!.url, prompt);
    const before = await asked(servers);
    const knows = async () => {
      await complete(url, `${prompt} And then`);
      return (await asked(servers))[2]! > before[2]!;
    };
    await expect.poll(knows, { timeout: TIMEOUT_MS, message: output() }).toBe(true);
    const settled = await asked(servers);
    const found = await hits(servers);
    for (let round = 0; round < 4; round += 1) await complete(url, `${prompt} And then, ${round}`);
    const after = await asked(servers);
    expect(after.map((value, index) => value - settled[index]! > 0)).toEqual([false, false, true]);
    expect((await hits(servers))[2]! - found[2]!).toBeGreaterThanOrEqual(4 * 128);
    expect(await streamed(url, story('goose'))).toBe(alone);
    // A worker that is killed is not asked again.
    servers[2]!.child.kill('SIGKILL');
    await servers[2]!.ended;
    for (let round = 0; round < 4; round += 1) expect(await complete(url, story('goose'))).toBe(alone);
    await killGroup(child);
  });

  it("sglang-router's cache-aware policy sends equal beginnings to one worker", async () => {
    const servers = await workers();
    const [port, metricsPort] = await freePorts(2);
    const { output } = begin(routingProgram('sglang-router'), [
      ...['launch', '--host', '127.0.0.1', '--port', String(port), '--prometheus-port', String(metricsPort)],
      ...['--policy', 'cache_aware', '--worker-urls', ...servers.map((server) => server.url)],
      ...['--health-check-interval-secs', '1', '--worker-startup-check-interval', '1'],
    ]);
    const url = `http://127.0.0.1:${port}`;
    await untilReady(url, output);
    const models = async () => {
      const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    await expect.poll(models, { timeout: TIMEOUT_MS }).toEqual(['gosling']);
    const workersKnown = async () =>
      ((await (await fetch(`${url}/workers`)).json()) as { workers: object[] }).workers.length;
    await expect.poll(workersKnown, { timeout: TIMEOUT_MS }).toBe(WORKERS);
    const names = ['goose', 'swan', 'duck', 'owl'];
    for (const name of names) await complete(url, story(name));
    const before = await hits(servers);
    for (let round = 0; round < 3; round += 1) {
      for (const name of names) await complete(url, `${story(name)} And then, ${round}`);
    }
    const after = await hits(servers);
    const found = after.reduce((sum, value, index) => sum + value - before[index]!, 0);
    expect(found).toBeGreaterThanOrEqual(3 * names.length * 96);
    const alone = await complete(servers[0]!.url, story('goose'));
    expect(await streamed(url, story('goose'))).toBe(alone);
    servers[0]!.child.kill('SIGKILL');
    await servers[0]!.ended;
    // Until its health check has noticed, the router may send a request there and answer 500.
    const answered = async () => {
      for (const name of [...names, ...names]) {
        const text = await complete(url, story(name)).catch(() => null);
        if (text === null) return false;
      }
      return true;
    };
    await expect.poll(answered, { timeout: TIMEOUT_MS }).toBe(true);
    expect(await complete(url, story('goose'))).toBe(alone);
  });
});
