import { afterAll, beforeAll, expect, it } from 'vitest';
import { demoModelPath } from '../../../src/settings/demo-model.js';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
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

const OPTIONS = ['--cache-dir', testCacheDir];
const ASKED = { prompt: 'Once', seed: 3, temperature: 1, max_tokens: 24, ignore_eos: true };

describeWithNats('a worker with several models', () => {
  let lab: QueueLab;
  let gateway: SkeinProcess;
  let worker: ReturnType<typeof spawnCli>;
  let expected: Any;

  const post = ({ url }: SkeinProcess, model: string) =>
    fetch(`${url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...ASKED }),
    });
  const workersOf = async (): Promise<Record<string, number>> => {
    const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as Any;
    return Object.fromEntries(data.map((one: Any) => [one.id, one.workers]));
  };

  beforeAll(async () => {
    const direct = await startServer(['--threads', '1', '--kv-cache-tokens', '4096']);
    expected = ((await (await post(direct, 'gosling')).json()) as Any).choices;
    await direct.stop();
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    const nats = ['--nats', lab.nats.url];
    gateway = await start([cliPath, 'gateway', '--port', '0', ...nats, ...OPTIONS], {});
    const models = ['a', 'b'].flatMap((name) => ['--model', `${name}=${demoModelPath()}`]);
    // Idle models go at once, but for the time that requests may take to come.
    worker = spawnCli(
      [cliPath, 'work', ...nats, ...models, '--threads', '1', '--keep-alive', '0', ...OPTIONS],
      {},
    );
  });
  afterAll(async () => {
    worker?.child.kill('SIGKILL');
    gateway?.child.kill('SIGKILL');
    await lab?.close();
  });

  it('loads each when it is wanted, gives the same answers, and lets it go when it is idle', async () => {
    await until('the models', async () => Object.keys(await workersOf()).length === 2);
    expect(await workersOf()).toEqual({ a: 0, b: 0 });
    // Until what a new gateway looks for is there it answers with 503.
    await until('404 for another', async () => (await post(gateway, 'c')).status === 404);
    for (const name of ['a', 'b']) {
      const first = await post(gateway, name);
      expect([first.status, first.headers.get('retry-after')]).toEqual([503, '10']);
      await until(`the model ${name}`, async () => (await workersOf())[name] === 1);
      const answer = await post(gateway, name);
      expect(((await answer.json()) as Any).choices).toEqual(expected);
    }
    await until('no model in memory', async () => Object.values(await workersOf()).every((one) => one === 0));
    // They are known now: a request waits until one is there.
    const later = await Promise.all(['a', 'b'].map((name) => post(gateway, name)));
    for (const answer of later) expect(((await answer.json()) as Any).choices).toEqual(expected);
  });

  it('ends with its processes, each of which hands over what it has', async () => {
    worker.child.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
    await until('no worker', async () => Object.values(await workersOf()).every((one) => one === 0));
  });
});
