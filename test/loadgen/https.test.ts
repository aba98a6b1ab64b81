import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { runBenchmark } from 'skein/loadgen';
import { afterEach, describe, expect, it } from 'vitest';
import { certificateFixture } from '../src/support/tls.js';
import { FakeLlm, goodChat } from './support/fake-llm.js';
import { say, WorkerHarness } from './support/worker-harness.js';

let server: FakeLlm;
afterEach(() => server.close());

/** Every name that a client asked for by SNI. */
async function start(): Promise<string[]> {
  const names: string[] = [];
  const files = certificateFixture('localhost');
  const pair = { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  const metrics = (url: string, response: { end(text: string): void }) =>
    response.end(url === '/metrics' ? 'fake_total 1\n' : '{}');
  server = await FakeLlm.start(goodChat, metrics, {
    ...pair,
    SNICallback: (name, callback) => {
      names.push(name);
      callback(null, createSecureContext(pair));
    },
  });
  return names;
}

const options = {
  requests: 6,
  warmup: 0,
  workers: 1,
  arrivals: { kind: 'concurrency', concurrency: 2 },
} as const;

describe('an https server', () => {
  it('is checked against the authority of ca, under the name of the URL, over warm connections', async () => {
    const names = await start();
    const { cert } = certificateFixture('localhost');
    const report = await runBenchmark({ ...options, url: `https://localhost:${server.port}`, ca: cert });
    const [run] = report.runs;
    expect(run!.requests).toMatchObject({ total: 6, outcomes: { completed: 6 } });
    expect(run!.client.workers[0]!.connectionsOpened).toBe(2);
    expect(run!.server!.metrics).toHaveProperty('fake_total');
    expect(new Set(names)).toEqual(new Set(['localhost']));
    expect(report.target.url).toMatch(/^https:/);
    const other = certificateFixture('other').cert;
    await expect(runBenchmark({ ...options, url: server.url, ca: other })).rejects.toThrow(
      /does not answer: .*certificate.*Give its authority with the option ca, or take any with insecure/,
    );
  });

  it('is taken whatever its certificate is where that is asked for, and else refused before any load', async () => {
    await start();
    await expect(runBenchmark({ ...options, url: server.url })).rejects.toThrow(/option ca, or take any/);
    expect(server.asked).toEqual([]);
    const report = await runBenchmark({ ...options, url: server.url, insecure: true, keepAlive: false });
    expect(report.runs[0]!.requests.outcomes.completed).toBe(6);
  });

  it('that is not trusted makes every request connect_failed', async () => {
    await start();
    const harness = new WorkerHarness(server.url, { connections: 2 });
    await harness.begin(2);
    harness.issue([say('a'), say('b'), say('c')]);
    const records = await harness.settled();
    harness.worker.close();
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(3).fill('connect_failed'));
    expect(harness.messages()[0]).toMatch(/self-signed certificate/);
  });

  it('has certificates, a plain one has none, and a file of them has to be there', async () => {
    await start();
    const plain = 'http://127.0.0.1:1';
    await expect(runBenchmark({ url: plain, insecure: true })).rejects.toThrow(/A certificate is for https/);
    await expect(runBenchmark({ url: server.url, insecure: true, ca: 'x' })).rejects.toThrow(
      /either checked/,
    );
    await expect(runBenchmark({ url: server.url, ca: '/nowhere.pem' })).rejects.toThrow(/nowhere\.pem/);
  });
});
