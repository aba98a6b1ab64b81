import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePorts } from '../../../tools/support/free-port.js';
import { repository } from '../../support/documents.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { postJson } from '../../support/post-json.js';
import { killGroup, type Program, startedPrograms } from '../support/program.js';
import { routingPython } from '../support/routing-python.js';
import { cliPath, testCacheDir } from '../support/skein-process.js';

const begin = startedPrograms();
const folder = temporaryFolder('skein-dynamo');
const PACKAGE = join(repository, 'deploy/dynamo');
const MODEL = join(repository, 'models/demo/gosling');
const WORKERS = 2;
const STREAMS = 6;
/** Of these, that have begun before a worker is killed: all of them were sent, and few can have ended. */
const MAX_STREAMS = 4;
const TIMEOUT_MS = 200_000;

/** Dynamo's processes find each other by a folder, and talk on this machine alone. */
const environment = {
  DYN_FILE_KV: folder,
  DYN_TCP_RPC_HOST: '127.0.0.1',
  DYN_EVENT_PLANE_HOST: '127.0.0.1',
  PYTHONPATH: PACKAGE,
  // Compiled once for all processes, and not next to a package.
  PYTHONDONTWRITEBYTECODE: '',
  PYTHONPYCACHEPREFIX: temporaryFolder('skein-dynamo-compiled'),
  SKEIN_CACHE_DIR: testCacheDir,
};

const worker = () =>
  begin(
    routingPython!,
    [
      ...['-m', 'skein_dynamo', '--discovery-backend', 'file', '--model', MODEL],
      ...['--skein', `${process.execPath} ${cliPath}`, '--threads', '1', '--access-log'],
    ],
    environment,
  );

/** Dynamo's own frontend with its router, before two workers. */
async function cluster(): Promise<{ url: string; workers: Program[] }> {
  const [port] = await freePorts(1);
  const workers = Array.from({ length: WORKERS }, worker);
  const { output } = begin(
    routingPython!,
    [
      ...['-m', 'dynamo.frontend', '--http-host', '127.0.0.1', '--http-port', String(port)],
      ...['--discovery-backend', 'file', '--router-mode', 'kv', '--migration-limit', '3'],
    ],
    environment,
  );
  const url = `http://127.0.0.1:${port}`;
  const instances = async () => {
    const response = await fetch(`${url}/health`).catch(() => null);
    const { instances = [] } = ((await response?.json()) ?? {}) as { instances?: { endpoint: string }[] };
    return instances.filter(({ endpoint }) => endpoint === 'generate').length;
  };
  const message = () => [output(), ...workers.map((one) => one.output().slice(-2000))].join('\n');
  await expect.poll(instances, { timeout: TIMEOUT_MS, message: message() }).toBe(WORKERS);
  const isServed = async () => (await (await fetch(`${url}/v1/models`)).text()).includes('gosling');
  await expect.poll(isServed, { timeout: TIMEOUT_MS }).toBe(true);
  return { url, workers };
}

interface Completion {
  id: string;
  choices: { text: string; finish_reason: string | null }[];
  usage: { prompt_tokens_details?: { cached_tokens: number } };
}

async function complete(url: string, body: object): Promise<Completion> {
  const response = await postJson(`${url}/v1/completions`, { model: 'gosling', max_tokens: 8, ...body }, {});
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text) as Completion;
}

interface Stream {
  id: string;
  text: string;
  reason: string | null;
}

/** Asks for a story of 900 tokens. @param onPiece receives each piece with the number of those before it */
async function story(url: string, index: number, seed: object, onPiece = (_: number) => {}): Promise<Stream> {
  const body = {
    ...{ model: 'gosling', prompt: `Story ${index}: Once upon a time`, max_tokens: 900 },
    ...{ stream: true, ignore_eos: true, ...seed },
  };
  const response = await postJson(`${url}/v1/completions`, body, {});
  expect(response.status).toBe(200);
  const stream: Stream = { id: '', text: '', reason: null };
  let rest = '';
  let pieces = 0;
  for await (const bytes of response.body!) {
    const events = (rest + Buffer.from(bytes).toString()).split('\n\n');
    rest = events.pop()!;
    for (const event of events) {
      if (!event.startsWith('data: {')) continue;
      const { id, choices, error } = JSON.parse(event.slice(6)) as Completion & { error?: object };
      expect(error).toBeUndefined();
      stream.id = id;
      stream.text += choices[0]?.text ?? '';
      stream.reason = choices[0]?.finish_reason ?? stream.reason;
      onPiece(pieces++);
    }
  }
  return stream;
}

/** What skein_dynamo makes of the id of a request that has no seed. */
const seedOf = (id: string) =>
  Number((createHash('sha256').update(id.replace('cmpl-', '')).digest().readBigUInt64BE() >> 8n) >> 3n);

const migrations = async (url: string) => {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('dynamo_frontend_model_migration_duration_seconds_count{'));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
};

describe.skipIf(routingPython === null)('a worker of NVIDIA Dynamo', () => {
  it('translates requests and answers', async () => {
    const args = ['-m', 'unittest', 'discover', '-q', join(PACKAGE, 'tests')];
    const { stderr } = await promisify(execFile)(routingPython!, args, {
      env: { ...process.env, ...environment },
    });
    expect(stderr).toMatch(/Ran \d+ tests[\s\S]*OK/);
  });

  it('gives the same answers although one of two is killed, and gets what it has cached', async () => {
    const { url, workers } = await cluster();
    const prompt = Array.from(
      { length: 12 },
      (_, index) => `The goose number ${index} flew over the lake.`,
    ).join(' ');
    const cached = async (index: number) => {
      const { usage } = await complete(url, { prompt: `${prompt} And then, ${index}`, temperature: 0 });
      return usage.prompt_tokens_details?.cached_tokens ?? 0;
    };
    expect(await cached(0)).toBe(0);
    await expect.poll(() => cached(1), { timeout: TIMEOUT_MS }).toBeGreaterThanOrEqual(128);
    for (let index = 2; index < 6; index += 1) expect(await cached(index)).toBeGreaterThanOrEqual(128);
    // What the worker cannot do is refused with its reason.
    const refused = await postJson(
      `${url}/v1/completions`,
      { model: 'gosling', prompt: 'a', n: 2, seed: 1 },
      {},
    );
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('n is more than 1'),
    ]);

    const indices = Array.from({ length: STREAMS }, (_, index) => index);
    // Every other one has no seed of its own.
    const seedFor = (index: number) => (index % 2 === 0 ? { seed: index } : {});
    const begun = new Set<number>();
    let noteMost = () => {};
    const mostBegun = new Promise<void>((resolve) => {
      noteMost = resolve;
    });
    const disturbed = indices.map((index) =>
      story(url, index, seedFor(index), (pieces) => {
        if (pieces < 20) return;
        begun.add(index);
        if (begun.size === MAX_STREAMS) noteMost();
      }),
    );
    await mostBegun;
    await killGroup(workers[1]!.child);
    const answers = await Promise.all(disturbed);
    expect(await migrations(url)).toBeGreaterThan(0);
    expect(answers.map(({ reason }) => reason)).toEqual(indices.map(() => 'length'));
    const alone: Stream[] = [];
    for (const [index, { id }] of answers.entries()) {
      alone.push(await story(url, index, { seed: seedFor(index).seed ?? seedOf(id) }));
    }
    expect(answers.map(({ text }) => text)).toEqual(alone.map(({ text }) => text));

    // A client that leaves ends its request in the engine.
    const leaving = new AbortController();
    const body = { model: 'gosling', prompt: 'Once', max_tokens: 900, ignore_eos: true, stream: true };
    const stream = await postJson(`${url}/v1/completions`, body, { signal: leaving.signal });
    await stream.body!.getReader().read();
    leaving.abort();
    const isLeft = () => workers.some(({ output }) => output().includes('"isWhole":false'));
    await expect.poll(isLeft, { timeout: TIMEOUT_MS }).toBe(true);
  });

  it('ends when its Skein dies, and leaves no Skein behind', async () => {
    const [one, other] = [worker(), worker()];
    const childOf = async ({ child }: Program) => {
      const { stdout } = await promisify(execFile)('pgrep', ['-P', String(child.pid)]);
      return Number(stdout.trim().split('\n')[0]);
    };
    await expect.poll(() => one.output(), { timeout: TIMEOUT_MS }).toContain('serves gosling at');
    const skein = await childOf(one);
    one.child.kill('SIGKILL');
    const isGone = () => {
      try {
        process.kill(skein, 0);
        return false;
      } catch {
        return true;
      }
    };
    await expect.poll(() => other.output(), { timeout: TIMEOUT_MS }).toContain('Registered endpoint');
    process.kill(await childOf(other), 'SIGKILL');
    await expect.poll(isGone, { timeout: TIMEOUT_MS }).toBe(true);
    const code = () => other.child.exitCode ?? other.child.signalCode;
    await expect.poll(code, { timeout: TIMEOUT_MS }).not.toBeNull();
    expect(other.output()).toContain('this worker ends too');
  });
});
