import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseExposition } from '../../tools/monitoring/exposition.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import {
  runCli,
  type SkeinProcess,
  startFakeServer,
  startServer,
  testCacheDir,
} from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';

const folder = temporaryFolder('skein-isolation');
const started = startedServers();

const path = tinyModelPath('gqa');
const TWO = { model: [`a=${path}`, `b=${path}`], isolate: 'true' };

/** Two models, each in a process of its own, whose every iteration takes 10 ms; one that died comes back after 3 s. */
const twoModels = (flags: Record<string, string> = {}) =>
  started(
    startFakeServer(
      { ...TWO, ...flags } as never,
      { vocabSize: 320, stepMs: 10 },
      { workerRestart: { delayMs: 3000, factor: 1 } },
    ),
  );

function complete(server: SkeinProcess, fields: object): Promise<Response> {
  const body = { prompt: 'ab', max_tokens: 200, temperature: 0, ignore_eos: true, ...fields };
  return postJson(`${server.url}/v1/completions`, body);
}

interface Streamed {
  /** Pieces of the answer. */
  text: string;
  errors: string[];
  isDone: boolean;
}

/** Reads a stream to its end; `onFirst` is called when its first piece has come. */
async function stream(server: SkeinProcess, fields: object, onFirst = () => {}): Promise<Streamed> {
  const response = await complete(server, { ...fields, stream: true });
  expect(response.status).toBe(200);
  const read: Streamed = { text: '', errors: [], isDone: false };
  let rest = '';
  for await (const bytes of response.body!.pipeThrough(new TextDecoderStream())) {
    onFirst();
    const lines = (rest + bytes).split('\n\n');
    rest = lines.pop()!;
    for (const line of lines) {
      // A comment keeps the connection open while no engine is there.
      if (line.startsWith(':')) continue;
      const data = line.slice('data: '.length);
      if (data === '[DONE]') {
        read.isDone = true;
        continue;
      }
      const event = JSON.parse(data) as {
        error?: { message: string; code: string };
        choices?: { text: string }[];
      };
      if (event.error) read.errors.push(`${event.error.code}: ${event.error.message}`);
      else read.text += event.choices?.[0]?.text ?? '';
    }
  }
  return read;
}

interface Health {
  status: string;
  reason?: string;
  restarts: number;
  models: Record<string, { status: string; pid?: number; restarts: number }>;
}

async function health(server: SkeinProcess): Promise<Health> {
  return (await (await fetch(`${server.url}/health`)).json()) as Health;
}

const pidsOf = async (server: SkeinProcess) =>
  Object.values((await health(server)).models).map(({ pid }) => pid!);

const isGone = (pid: number) => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

/** Starts answers of both models, and resolves with them when the first pieces of all have come. */
async function underLoad(server: SkeinProcess): Promise<Record<'a' | 'b', Promise<Streamed>[]>> {
  const all: Promise<void>[] = [];
  const begin = (fields: object) => {
    const { promise, resolve } = withResolvers();
    all.push(promise);
    return stream(server, fields, resolve);
  };
  const answers = {
    a: [1, 2, 3, 4].map((seed) => begin({ model: 'a', prompt: `a${seed}`, seed })),
    b: [1, 2, 3, 4].map((seed) => begin({ model: 'b', prompt: `b${seed}`, seed })),
  };
  await Promise.all(all);
  return answers;
}

function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('engines in processes of their own', () => {
  it('that end by SIGKILL, by SIGSEGV or by silence are a pause to their requests, and nothing to those of the other model', async () => {
    const server = await twoModels({ watchdogTimeoutSeconds: '3' });
    const prompts = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'b3', 'b4'];
    const alone = await Promise.all(prompts.map((prompt) => stream(server, { model: prompt[0], prompt })));
    for (const { errors, isDone } of alone) expect([errors, isDone]).toEqual([[], true]);
    const before = await health(server);
    const [pidOfA, pidOfB] = await pidsOf(server);
    expect(new Set([pidOfA, pidOfB, server.child.pid]).size).toBe(3);
    const answers = await underLoad(server);
    process.kill(pidOfA!, 'SIGKILL');
    await expect.poll(async () => (await health(server)).status).toBe('degraded');
    const down = await health(server);
    expect([down.models.a!.status, down.models.b!.status]).toEqual(['restarting', 'ready']);
    expect(down.reason).toMatch(/^The engine's process was ended by SIGKILL; /);
    expect((await fetch(`${server.url}/health?model=a`)).status).toBe(503);
    // Sent while no engine of this model runs: it waits for the next one.
    const late = stream(server, { model: 'a', prompt: 'a1' });
    expect(await Promise.all([...answers.a, ...answers.b])).toEqual(alone);
    expect(await late).toEqual(alone[0]);
    const after = await health(server);
    expect(after).toMatchObject({ status: 'ready', restarts: 1 });
    expect(after.models.b).toEqual(before.models.b);
    expect(after.models.a!.pid).not.toBe(pidOfA);
    expect(isGone(pidOfA!)).toBe(true);
    // What follows the loss of a process is the same however it was lost.
    for (const signal of ['SIGSEGV', 'SIGSTOP'] as const) {
      const [pid] = await pidsOf(server);
      const { promise: begun, resolve } = withResolvers();
      const resumed = stream(server, { model: 'a', prompt: 'a1' }, resolve);
      await begun;
      process.kill(pid!, signal);
      expect(await resumed).toEqual(alone[0]);
      expect(isGone(pid!)).toBe(true);
    }
    expect(await health(server)).toMatchObject({ status: 'ready', restarts: 3 });
    const families = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
    const { samples } = families.get('skein:requests_resumed_total')!;
    expect(samples.map(({ labels, value }) => [labels.model_name, value])).toEqual([
      ['a', 6],
      ['b', 0],
    ]);
    const pids = await pidsOf(server);
    const { code, stderr } = await server.stop();
    expect(code).toBe(0);
    expect(stderr).toMatch(/ended by SIGSEGV.*engine error/);
    for (const pid of pids) expect(isGone(pid)).toBe(true);
  });

  it('that cannot be started again ends the server, as it does where it is a thread', async () => {
    const server = await started(
      startFakeServer(
        { model: path, isolate: 'true' },
        { vocabSize: 320, stepMs: 5, loads: join(folder, 'loads') },
        { workerRestart: { delayMs: 10, factor: 1 } },
      ),
    );
    process.kill((await pidsOf(server))[0]!, 'SIGKILL');
    const { code, stderr } = await server.ended;
    expect(stderr).toMatch(/could not be started again in 5 attempts; the last one failed: load 6 fails/);
    expect(code).toBe(1);
  });

  it('end with a server that is killed, whatever they are doing', async () => {
    const server = await twoModels();
    const pids = await pidsOf(server);
    const answers = await underLoad(server);
    const broken = Promise.allSettled([...answers.a, ...answers.b]);
    server.child.kill('SIGKILL');
    // The engines write to the server's pipes, so the pipes end when all engines are gone.
    expect(await server.ended).toMatchObject({ signal: 'SIGKILL' });
    await expect.poll(() => pids.map(isGone)).toEqual([true, true]);
    expect((await broken).map(({ status }) => status)).toEqual(new Array(8).fill('rejected'));
  });

  it('heed no signal that is for the server: the answers under way are finished', async () => {
    // However slow the machine is, no answer is cut off.
    const server = await twoModels({ drainTimeoutSeconds: '600' });
    const pids = await pidsOf(server);
    const answers = await underLoad(server);
    // All processes get the signal, as from a terminal or systemd. The first to get it must not be the first to end.
    for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const)
      for (const pid of pids) process.kill(pid, signal);
    await new Promise((resolve) => setTimeout(resolve, 50));
    server.child.kill('SIGINT');
    for (const answer of [...answers.a, ...answers.b])
      expect(await answer).toMatchObject({ errors: [], isDone: true });
    const { code, stderr } = await server.ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/engine/);
    expect(pids.map(isGone)).toEqual([true, true]);
  });

  it('are cut off at the end of the drain, in the middle of an iteration', async () => {
    const server = await started(
      startFakeServer(
        { model: path, isolate: 'true', drainTimeoutSeconds: '0' },
        { vocabSize: 320, stepMs: 600_000 },
      ),
    );
    const [pid] = await pidsOf(server);
    const whole = complete(server, { max_tokens: 2 });
    const running = async () => {
      const families = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
      return families.get('vllm:num_requests_running')!.samples[0]!.value;
    };
    await expect.poll(running).toBe(1);
    const ended = server.stop();
    expect((await whole).status).toBe(503);
    expect((await ended).code).toBe(0);
    expect(isGone(pid!)).toBe(true);
  });

  it('answer as threads do, and their memory is in the metrics, where a model of the file asks for it', async () => {
    const config = join(folder, 'models.yaml');
    const common = `model: ${path}, weights: bf16, kvCacheTokens: 4096`;
    writeFileSync(
      config,
      `models:\n  - { name: alone, isolate: true, ${common} }\n  - { name: inside, ${common} }\n`,
    );
    const server = await started(startServer(['--config', config]));
    const { models } = await health(server);
    expect(models.alone!.pid).toBeGreaterThan(0);
    expect(models.inside).not.toHaveProperty('pid');
    const fields = { prompt: 'one two three', max_tokens: 40, temperature: 0.8, seed: 5, logprobs: 3 };
    const answers = await Promise.all(
      ['alone', 'inside'].map(async (model) => (await complete(server, { ...fields, model })).json()),
    );
    const choices = answers.map((answer) => (answer as { choices: object }).choices);
    expect(choices[0]).toBeDefined();
    expect(choices[0]).toEqual(choices[1]);
    const regex = { structured_outputs: { regex: '[0-9]{12}' }, ignore_eos: false };
    const guided = { ...fields, ...regex, model: 'alone' };
    const text = (await (await complete(server, guided)).json()) as { choices: { text: string }[] };
    expect(text.choices[0]!.text).toMatch(/^[0-9]{12}$/);
    const families = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
    const { samples } = families.get('skein:engine_process_resident_memory_bytes')!;
    expect(samples.map(({ labels }) => labels.model_name)).toEqual(['alone']);
    expect(samples[0]!.value).toBeGreaterThan(2 ** 24);
    expect((await server.stop()).code).toBe(0);
  });

  it('take no turns with others, so that a weight for them is refused', async () => {
    const flags = ['--isolate', '--compute-weight', '2', '--cache-dir', testCacheDir];
    const { code, stderr } = await runCli(['serve', '--port', '0', '--model', path, ...flags]);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toMatch(/compute-?weight is refused: an engine in a process of its own takes no turns/i);
  });
});
