import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NatsProcess } from '../../../tools/support/queue/nats-process.js';
import { type LabWorker, QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import {
  cleanEnvironment,
  cliPath,
  type SkeinProcess,
  start,
  startServer,
  testCacheDir,
} from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';
import { certificateFixture } from '../support/tls.js';
import { warmCli } from '../support/warm-cli.js';

const runCli = warmCli();

const OPTIONS = ['--cache-dir', testCacheDir];
const WORKER = [...OPTIONS, '--threads', '1', '--kv-cache-tokens', '4096', '--max-active-requests', '2'];
const GATEWAY = [
  'gateway',
  '--port',
  '0',
  '--worker-wait-seconds',
  '2',
  '--max-queued-requests',
  '4',
  ...OPTIONS,
];

const clientOf = ({ url }: SkeinProcess) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });

const healthOf = async ({ url }: SkeinProcess): Promise<[number, { status: string }]> => {
  const answer = await fetch(`${url}/health`);
  return [answer.status, (await answer.json()) as { status: string }];
};

describeWithNats('skein gateway and skein work', () => {
  let lab: QueueLab;
  let gateway: SkeinProcess;
  /** A server that has the model itself. */
  let direct: SkeinProcess;
  let client: OpenAI;

  const startGateway = async () => {
    gateway = await start([cliPath, ...GATEWAY, '--nats', lab.nats.url], {});
    client = clientOf(gateway);
  };
  beforeAll(async () => {
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    await startGateway();
    direct = await startServer(['--threads', '1', '--kv-cache-tokens', '4096']);
  });
  afterAll(async () => {
    await direct?.stop();
    await gateway?.stop();
    await lab?.close();
  });

  it('know no model before there is a worker, and its name from then on', async () => {
    expect((await client.models.list()).data).toEqual([]);
    const loading = { status: 'loading', reason: 'no worker has reported yet' };
    expect(await healthOf(gateway)).toMatchObject([503, loading]);
    await lab.startWorker(WORKER);
    await until('the model', async () => (await client.models.list()).data.length > 0);
    expect((await client.models.list()).data[0]!.id).toBe('gosling');
    const ready = await fetch(`${gateway.url}/v2/models/gosling/ready`);
    expect(ready.status).toBe(200);
    await until('the gateway to be ready', async () => (await healthOf(gateway))[0] === 200);
    expect((await healthOf(gateway))[1].status).toBe('ready');
  });

  it('answer as a server that has the model itself, to the bit, in every protocol', async () => {
    const asked = {
      model: 'gosling',
      messages: [{ role: 'user' as const, content: 'Tell me of a goose.' }],
      seed: 5,
      temperature: 0.9,
      n: 2,
      max_tokens: 30,
      logprobs: true,
      top_logprobs: 2,
    };
    const answers = await Promise.all(
      [client, clientOf(direct)].map((one) => one.chat.completions.create(asked)),
    );
    expect(answers[0]!.choices).toEqual(answers[1]!.choices);
    expect(answers[0]!.usage).toEqual(answers[1]!.usage);
    expect(answers[0]!.system_fingerprint).toMatch(/^fp_/);
    expect(answers[0]!.system_fingerprint).toBe(answers[1]!.system_fingerprint);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics).toMatch(/^skein:queue_sent_requests_total\{.*answer="taken"\} [1-9]/m);
    const body = JSON.stringify({
      text_input: 'Once',
      parameters: { max_tokens: 8, seed: 3, temperature: 1 },
    });
    const [over, at] = await Promise.all(
      [gateway, direct].map(async ({ url }) => {
        const answer = await fetch(`${url}/v2/models/gosling/generate`, { method: 'POST', body });
        return ((await answer.json()) as { text_output: string }).text_output;
      }),
    );
    expect(over).toBe(at);
    expect(over!.length).toBeGreaterThan(5);
  });

  it('call tools as a server that has the model itself', async () => {
    const parameters = {
      type: 'object',
      properties: { city: { enum: ['Rome', 'Oslo'] } },
      required: ['city'],
    };
    const asked = {
      ...{ model: 'gosling', seed: 6, temperature: 1, max_tokens: 200 },
      messages: [{ role: 'user' as const, content: 'What is the weather?' }],
      tools: [{ type: 'function' as const, function: { name: 'weather', parameters } }],
      tool_choice: 'required' as const,
    };
    const [over, at] = await Promise.all(
      [client, clientOf(direct)].map((one) => one.chat.completions.create(asked)),
    );
    const calls = (answer: typeof over) =>
      answer!.choices[0]!.message.tool_calls?.map((call) => call.type === 'function' && call.function);
    expect(calls(over)).toEqual(calls(at));
    expect(calls(over)).toEqual([{ name: 'weather', arguments: expect.stringMatching(/Rome|Oslo/) }]);
  });

  it('refuse a bad request in the words of a server', async () => {
    const bad = client.chat.completions.create({
      model: 'gosling',
      messages: [{ role: 'user', content: 'x' }],
      max_tokens: 5000,
    });
    await expect(bad).rejects.toMatchObject({ status: 400, message: expect.stringContaining('5000') });
    const wrong = client.completions.create({ model: 'gosling', prompt: 'x', logit_bias: { '99999': 1 } });
    await expect(wrong).rejects.toMatchObject({ status: 400 });
  });

  it('answer 429 with Retry-After where the queue is full, and lose none of the others', async () => {
    const ask = () =>
      client.completions.create({
        model: 'gosling',
        prompt: 'Once',
        max_tokens: 200,
        seed: 1,
        temperature: 1,
      });
    const results = await Promise.allSettled(Array.from({ length: 40 }, ask));
    const texts = new Set(
      results.flatMap((one) => (one.status === 'fulfilled' ? [one.value.choices[0]!.text] : [])),
    );
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(texts.size).toBe(1);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) {
      expect(error).toMatchObject({ status: 429, code: 'queue_full' });
      expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    await lab.untilIdle();
  });

  it('keep tenants apart: no cached blocks in common, and fair shares of the workers', async () => {
    const keys = ['a', 'b'].map((name) => `- name: ${name}\n  key: secret-${name}-0123456789\n`);
    const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
    writeFileSync(join(folder, 'keys.yaml'), keys.join(''));
    const more = [
      '--api-key-file',
      join(folder, 'keys.yaml'),
      '--fair-queueing',
      '--max-queued-requests',
      '100',
    ];
    const own = await start([cliPath, ...GATEWAY, ...more, '--nats', lab.nats.url], {});
    const [a, b] = ['a', 'b'].map(
      (name) => new OpenAI({ baseURL: `${own.url}/v1`, apiKey: `secret-${name}-0123456789`, maxRetries: 0 }),
    );
    await until('the model', async () => (await a!.models.list()).data.length > 0);
    const prompt = 'A goose and a gosling went out into the wide, wide world. '.repeat(6);
    const cachedOf = async (one: OpenAI) =>
      (await one.completions.create({ model: 'gosling', prompt, max_tokens: 2 })).usage!
        .prompt_tokens_details!.cached_tokens!;
    expect(await cachedOf(a!)).toBe(0);
    expect(await cachedOf(a!)).toBeGreaterThan(30);
    expect(await cachedOf(b!)).toBe(0);
    // A flood of one key, and then one request of the other: it does not wait for all of the flood.
    const order: string[] = [];
    const ask = (one: OpenAI, name: string) =>
      one.completions
        .create({
          model: 'gosling',
          prompt: 'Once',
          max_tokens: 120,
          temperature: 1,
          ignore_eos: true,
        } as never)
        .then(() => order.push(name));
    const flood = Array.from({ length: 40 }, () => ask(a!, 'a'));
    await Promise.race(flood);
    const late = ask(b!, 'b');
    await Promise.all([...flood, late]);
    expect(order.indexOf('b')).toBeLessThan(33);
    expect((await own.stop()).code).toBe(0);
    rmSync(folder, { recursive: true });
  });

  it('tell apart workers that have other weights under the same name', async () => {
    const other = await lab.startWorker([...WORKER, '--weights', 'int8']);
    const engines = async (): Promise<string[]> =>
      ((await client.models.list()).data[0] as unknown as { system_fingerprints: string[] })
        .system_fingerprints;
    await until('both engines', async () => (await engines()).length === 2);
    const asked = { model: 'gosling', prompt: 'Once', seed: 3, temperature: 1, max_tokens: 24 };
    const textsOf = new Map<string, Set<string>>();
    await until('answers of both', async () => {
      const answers = await Promise.all([1, 2, 3].map(() => client.completions.create(asked)));
      for (const { system_fingerprint, choices } of answers) {
        const texts = textsOf.get(system_fingerprint!) ?? new Set();
        textsOf.set(system_fingerprint!, texts.add(choices[0]!.text));
      }
      return textsOf.size === 2;
    });
    expect([...textsOf.keys()].sort()).toEqual((await engines()).sort());
    // To one fingerprint and seed there is one answer.
    for (const texts of textsOf.values()) expect(texts.size).toBe(1);
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(metrics.match(/^skein:engines\{.*\} 1$/gm)).toHaveLength(2);
    expect(gateway.output().stderr.match(/have different engines/g)).toHaveLength(1);
    await lab.kill(other, 'SIGTERM');
    await until('one engine', async () => (await engines()).length === 1);
  });

  it('begin an answer again in another pool where its client has had nothing', async () => {
    const other = await lab.startWorker([...WORKER, '--weights', 'int8']);
    await until('both engines', async () => {
      const [model] = (await client.models.list()).data;
      return (model as unknown as { system_fingerprints: string[] }).system_fingerprints.length === 2;
    });
    const asked = { model: 'gosling', prompt: 'Once', seed: 3, temperature: 1, max_tokens: 400 };
    const body = { ...asked, ignore_eos: true } as never;
    const before = new Map<string, string>();
    await until('answers of both', async () => {
      const answers = await Promise.all([1, 2, 3].map(() => client.completions.create(body)));
      for (const { system_fingerprint, choices } of answers)
        before.set(system_fingerprint!, choices[0]!.text);
      return before.size === 2;
    });
    let killed: LabWorker | undefined;
    const unhear = lab.onFrame(({ worker, index }) => {
      if (index < 40 || killed !== undefined) return;
      killed = lab.find(worker);
      void lab.kill(killed!);
    });
    const { system_fingerprint: by, choices, usage } = await client.completions.create(body);
    unhear();
    expect(killed).toBeDefined();
    // It is the other engine's from its first token to its last.
    expect(choices[0]!.text).toBe(before.get(by!));
    expect(usage!.completion_tokens).toBe(400);
    if (killed === other) return;
    await lab.startWorker(WORKER);
    await lab.kill(other, 'SIGTERM');
  });

  it('stop the work for a client that leaves', async () => {
    const leave = new AbortController();
    const stream = await client.completions.create(
      { model: 'gosling', prompt: 'Once', max_tokens: 900, stream: true, ignore_eos: true } as never,
      { signal: leave.signal },
    );
    for await (const _ of stream as unknown as AsyncIterable<unknown>) break;
    leave.abort();
    await lab.untilIdle();
  });

  it('hold nothing for a gateway that was killed', async () => {
    const stream = await client.completions.create({
      model: 'gosling',
      prompt: 'Once',
      max_tokens: 1000,
      stream: true,
      ignore_eos: true,
    } as never);
    const read = (async () => {
      for await (const _ of stream as unknown as AsyncIterable<unknown>) gateway.child.kill('SIGKILL');
    })();
    await expect(read).rejects.toThrow();
    await lab.untilIdle();
    await until('an empty stream', async () => (await lab.inStream()) === 0);
    await startGateway();
  });

  it('say that the NATS server is away, answer 503 meanwhile, and go on when it is there again', async () => {
    await until('the model', async () => (await client.models.list()).data.length > 0);
    await lab.nats.kill();
    await until('the loss to show', async () => (await healthOf(gateway))[1].status === 'disconnected');
    expect(await healthOf(gateway)).toMatchObject([503, { reason: 'the NATS server cannot be reached' }]);
    const ask = () => client.completions.create({ model: 'gosling', prompt: 'Once', max_tokens: 5 });
    await expect(ask()).rejects.toMatchObject({
      ...{ status: 503, code: 'engine_unavailable' },
      message: expect.stringContaining('The NATS server'),
    });
    await lab.nats.startAgain();
    await until('the return to show', async () => (await healthOf(gateway))[1].status === 'ready');
    const answer = await ask().catch(ask);
    expect(answer.choices[0]!.text).not.toBe('');
    const told = gateway.output().stderr.match(/The NATS server (cannot|is there)/g);
    expect(told).toEqual(['The NATS server cannot', 'The NATS server is there']);
  });

  it('answer 503 where no worker is left', async () => {
    await until('the model', async () => (await client.models.list()).data.length > 0);
    for (const worker of lab.workers) await lab.kill(worker);
    const asked = client.completions.create({ model: 'gosling', prompt: 'Once', max_tokens: 5 });
    await expect(asked).rejects.toMatchObject({
      ...{ status: 503, code: 'engine_unavailable' },
      message: expect.stringContaining('No worker has the model gosling at present'),
    });
    const answer = await fetch(`${gateway.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gosling', prompt: 'Once', max_tokens: 5, stream: true }),
    });
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toMatch(/^\d+$/);
    await answer.body!.cancel();
  });
});

/** A token of NATS, signed by `by`. */
function natsToken(by: ReturnType<typeof nkeys.createUser>, sub: string, name: string, nats: object): string {
  const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString('base64url');
  const claims = { jti: name, iat: Math.floor(Date.now() / 1000), iss: by.getPublicKey(), name, sub, nats };
  const text = `${base64(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }))}.${base64(JSON.stringify(claims))}`;
  return `${text}.${base64(by.sign(Buffer.from(text)))}`;
}

/** Configuration of a server with an operator and an account, and the credentials of a user of it. */
function credentials(): { config: string; creds: string } {
  const [operator, account, system, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ];
  const limits = {
    subs: -1,
    data: -1,
    payload: -1,
    imports: -1,
    exports: -1,
    conn: -1,
    leaf: -1,
    wildcards: true,
  };
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const ofOperator = natsToken(operator, operator.getPublicKey(), 'O', { type: 'operator', version: 2 });
  const ofSystem = natsToken(operator, system.getPublicKey(), 'S', { type: 'account', version: 2, limits });
  const ofAccount = natsToken(operator, account.getPublicKey(), 'A', {
    ...{ type: 'account', version: 2, limits: { ...limits, ...storage } },
  });
  const ofUser = natsToken(account, user.getPublicKey(), 'U', {
    ...{ type: 'user', version: 2, pub: {}, sub: {}, subs: -1, data: -1, payload: -1 },
  });
  const accounts = [`${account.getPublicKey()}: ${ofAccount}`, `${system.getPublicKey()}: ${ofSystem}`];
  const config = [
    ...[`operator: ${ofOperator}`, 'resolver: MEMORY', `system_account: ${system.getPublicKey()}`],
    ...['resolver_preload: {', ...accounts, '}'],
  ].join('\n');
  const seed = Buffer.from(user.getSeed()).toString();
  const creds = `-----BEGIN NATS USER JWT-----\n${ofUser}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  return { config, creds };
}

describeWithNats('the connection to NATS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-nats-secrets-'));
  const file = (name: string, text: string | Buffer) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  afterAll(() => rmSync(folder, { recursive: true }));

  it('has TLS and a password, which no output shows', async () => {
    const { cert, key } = certificateFixture('localhost');
    const tls = ['--tls', '--tlscert', cert, '--tlskey', key];
    const nats = await NatsProcess.start(testNats!, [...tls, '--user', 'skein', '--pass', 'sesame-1']);
    const address = ['--nats', `tls://localhost:${nats.port}`, '--nats-ca-file', cert];
    const right = [
      ...GATEWAY,
      ...address,
      '--nats-user',
      'skein',
      '--nats-password-file',
      file('right', 'sesame-1\n'),
    ];
    const gateway = await start([cliPath, ...right], {});
    expect((await gateway.stop()).code).toBe(0);
    const wrong = await runCli([...GATEWAY, ...address, '--nats-user', 'skein'], {
      environment: { SKEIN_NATS_PASSWORD: 'sesame-2' },
    });
    expect(wrong).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^skein: The NATS server tls:.* cannot be used: .*uthoriz/),
    });
    const stranger = await runCli([...GATEWAY, '--nats', `tls://localhost:${nats.port}`], {});
    expect(stranger.stderr).toMatch(
      /cannot be used: .*certificate.*--nats-ca-file is for an authority of your own/i,
    );
    for (const { stdout, stderr } of [wrong, stranger, gateway.output()])
      expect(stdout + stderr).not.toContain('sesame');
    await nats.close();
  });

  it('gives up what takes a connection and says nothing', async () => {
    const mute = createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const { port } = mute.address() as AddressInfo;
    const gateway = await runCli([...GATEWAY, '--nats', `127.0.0.1:${port}`], {});
    expect(gateway).toMatchObject({ code: 1, stderr: expect.stringMatching(/cannot be used: .*timeout/) });
    mute.close();
  });

  it('has an nkey, or a file of credentials', async () => {
    const user = nkeys.createUser();
    const nkeyConfig = file('nkey.conf', `authorization { users: [{ nkey: ${user.getPublicKey()} }] }\n`);
    const seed = file('user.nk', user.getSeed() as Buffer);
    const { config, creds } = credentials();
    const cases = [
      [nkeyConfig, ['--nats-nkey-file', seed]],
      [file('jwt.conf', config), ['--nats-creds-file', file('user.creds', creds)]],
    ] as const;
    for (const [flag, name] of [
      ['--nats-nkey-file', 'bad.nk'],
      ['--nats-creds-file', 'bad.creds'],
    ] as const) {
      const path = file(name, 'nonsense\n');
      const bad = await runCli([...GATEWAY, '--nats', '127.0.0.1:1', flag, path], {});
      expect(bad).toMatchObject({
        ...{
          code: 2,
          stderr: expect.stringContaining(`The file of ${flag}, ${path}, holds no key: it must`),
        },
      });
    }
    for (const [conf, secrets] of cases) {
      const nats = await NatsProcess.start(testNats!, ['-c', conf]);
      const gateway = await start([cliPath, ...GATEWAY, '--nats', nats.url, ...secrets], {});
      expect((await gateway.stop()).code).toBe(0);
      await nats.close();
    }
  });

  it('is refused with one sentence', async () => {
    const cases: [string[], string][] = [
      [[], '--nats is required'],
      [['--nats', 'nats://user:secret@127.0.0.1:1'], '--nats holds a user or a password'],
      [['--nats', 'http://127.0.0.1'], '--nats is "http://127.0.0.1"; an address such as'],
      [['--nats', '127.0.0.1:1', '--nats-user', 'a'], '--nats-user needs a password'],
      [
        ['--nats', '127.0.0.1:1', '--nats-cert-file', 'x'],
        '--nats-cert-file and --nats-key-file belong together',
      ],
      [
        ['--nats', '127.0.0.1:1', '--nats-creds-file', '/nowhere'],
        'The file of --nats-creds-file, /nowhere, cannot be read',
      ],
      [
        ['--nats', '127.0.0.1:1', '--nats-creds-file', 'x', '--nats-nkey-file', 'y'],
        '--nats-creds-file and --nats-nkey-file are credentials of different kinds',
      ],
      [
        ['--nats', '127.0.0.1:1', '--nats-prefix', 'a b'],
        '--nats-prefix is "a b"; it must be words of letters',
      ],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await runCli([...GATEWAY, ...args]);
      expect(stderr).toContain(message);
      expect(code).toBe(2);
      expect(stderr).not.toContain('secret');
    }
  });
});
