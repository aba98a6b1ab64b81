import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NatsQuotaRecords } from '../../../src/queue/nats-quota-records.js';
import type { Caller } from '../../../src/server/web/access/api-keys.js';
import type { ApiError } from '../../../src/server/web/errors.js';
import type { QuotaRecords } from '../../../src/server/web/quotas/quota-records.js';
import { Quotas } from '../../../src/server/web/quotas/quotas.js';
import { NatsStores } from '../../../tools/support/queue/nats-stores.js';
import { QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { postJson } from '../../support/post-json.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const callerOf = (name: string, limit: number): Caller => ({
  ...{ name, weight: 1, isAdmin: false, cacheGroup: null },
  limits: { tokens_per_day: limit },
});
const COST = { promptTokens: 1, outputTokens: 2, answers: 1 };

describeWithNats('the limits of keys in a bucket', () => {
  let stores: NatsStores;
  let numGateways = 0;
  beforeAll(async () => {
    stores = await NatsStores.start();
  });
  afterAll(() => stores?.close());

  /** Limits as a gateway has them, over a connection of its own. */
  const gateway = async () => {
    const nc = await NatsStores.connect(stores.server);
    const records = stores.records('QUOTAS', {}, nc);
    await records.open();
    const shared = await NatsQuotaRecords.open(records, `g${numGateways++}`);
    return { quotas: new Quotas(shared), shared, nc };
  };
  /** Requests that were let in among as many as are asked at once. */
  const letIn = async (quotas: Quotas, caller: Caller, count: number) => {
    const asked = Array.from({ length: count }, () =>
      quotas.admit(caller, COST, undefined).catch((error) => error),
    );
    const admitted = (await Promise.all(asked)).filter((one) => 'tally' in one);
    return { admitted, count: admitted.length };
  };

  it('are kept by gateways together, each of which draws what it needs', async () => {
    const [a, b] = [await gateway(), await gateway()];
    const caller = callerOf('alice', 300);
    const [atA, atB] = await Promise.all([letIn(a.quotas, caller, 80), letIn(b.quotas, caller, 80)]);
    // Nothing lies idle where both are asked for more than there is.
    expect(atA.count + atB.count).toBe(100);
    expect(Math.min(atA.count, atB.count)).toBeGreaterThan(0);
    expect(b.quotas.stateOf(caller).tokens).toMatchObject({ limit: 300, remaining: 0 });
    // What was not begun after all comes back, and is found by the other.
    for (const admission of atA.admitted) admission.cancel();
    await a.quotas.flush(true);
    await expect
      .poll(async () => (await letIn(b.quotas, caller, 80)).count, { timeout: 60_000 })
      .toBe(atA.count);
    await Promise.all([a.nc.close(), b.nc.close()]);
  });

  it('lose a slice at most with a gateway that dies, until the window is over', async () => {
    const [dead, left] = [await gateway(), await gateway()];
    const caller = callerOf('bob', 300);
    expect((await letIn(dead.quotas, caller, 1)).count).toBe(1);
    await dead.nc.close();
    const { count } = await letIn(left.quotas, caller, 200);
    // One request was let in there, of a slice of 15 tokens.
    expect(count).toBe((300 - 15) / 3);
    await left.nc.close();
  });

  it('count what a day has taken for whoever comes later, and refuse where the bucket cannot be reached', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const caller = callerOf('carol', 300);
    const admission = await first.quotas.admit(caller, COST, undefined);
    const answer = admission.tally.begin({ model: 'm', promptTokens: 1 });
    answer.onTokens(2);
    answer.onEnd('stop');
    await first.quotas.flush(true);
    const [report] = await second.quotas.reports([caller]);
    expect(report).toMatchObject({
      today: { requests: 1, promptTokens: 1, completionTokens: 2 },
      total: { requests: 0 },
    });
    await second.nc.close();
    const error: ApiError = await second.quotas.admit(caller, COST, undefined).then(
      () => expect.unreachable(),
      (reason) => reason,
    );
    expect([error.status, error.apiCode]).toEqual([503, 'limits_unavailable']);
    await first.nc.close();
  });

  it('go by the clock of the NATS server, whatever that of a gateway shows', async () => {
    const { shared, nc } = await gateway();
    const realNow = Date.now;
    const nowOf = (records: QuotaRecords) => Math.abs(records.nowMs() - realNow());
    expect(nowOf(shared)).toBeLessThan(30_000);
    Date.now = () => realNow() + 3_600_000;
    try {
      const records = stores.records('QUOTAS', {}, nc);
      const skewed = await NatsQuotaRecords.open(records, 'skewed');
      expect(nowOf(skewed)).toBeLessThan(30_000);
    } finally {
      Date.now = realNow;
    }
    await nc.close();
  });
});

describeWithNats('two gateways', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-quotas-'));
  const keys = join(folder, 'keys.json');
  const CACHE = ['--cache-dir', testCacheDir];
  let lab: QueueLab;
  const gateways: SkeinProcess[] = [];

  const startGateway = async (): Promise<SkeinProcess> => {
    const args = ['gateway', '--nats', lab.nats.url, '--port', '0', '--api-key-file', keys, ...CACHE];
    const gateway = await start([cliPath, ...args], {});
    gateways.push(gateway);
    const isReady = async () => (await fetch(`${gateway.url}/health`)).status === 200;
    await until('the model', isReady);
    return gateway;
  };
  const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  /** 4 tokens of the prompt, and 6 of the answer. */
  const complete = ({ url }: SkeinProcess) =>
    postJson(
      `${url}/v1/completions`,
      { model: 'tiny', prompt: [5, 6, 7, 8], max_tokens: 6, ignore_eos: true },
      as('sk-a'),
    );
  const usageAt = async ({ url }: SkeinProcess) => {
    const { data } = (await (await fetch(`${url}/usage`, as('sk-root'))).json()) as {
      data: { key: string; today: { requests: number } }[];
    };
    return data.find(({ key }) => key === 'alice')!;
  };

  beforeAll(async () => {
    const alice = { name: 'alice', key: 'sk-a', tokens_per_day: 50 };
    writeFileSync(keys, JSON.stringify([alice, { name: 'root', key: 'sk-root', admin: true }]), {
      mode: 0o600,
    });
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    const model = ['--model', `tiny=${tinyModelPath('gqa')}`, '--weights', 'f32', '--threads', '1'];
    await lab.startWorker([...model, '--kv-cache-tokens', '4096', ...CACHE]);
    await startGateway();
    await startGateway();
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await lab?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('let a key have its limit together, and a third one knows of it when one was killed', async () => {
    const [a, b] = gateways;
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      for (const gateway of [a!, b!]) statuses.push((await complete(gateway)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    const told = { requests: 5, prompt_tokens: 20, completion_tokens: 30 };
    await until('the first to have told', async () => (await usageAt(b!)).today.requests === told.requests);
    a!.child.kill('SIGKILL');
    await a!.ended;
    const third = await startGateway();
    const refused = await complete(third);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('x-ratelimit-remaining-tokens')).toBe('0');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // The one that lives reports its part within seconds.
    await until(
      'the third to hear of all',
      async () => (await usageAt(third)).today.requests === told.requests,
    );
    expect((await usageAt(third)).today).toMatchObject(told);
  });
});
