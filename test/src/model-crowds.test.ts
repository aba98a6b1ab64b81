import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { InferError, ModelServer } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { stopProcess } from '../support/rank-managers.js';
import { draws } from '../support/scale.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';

const folder = temporaryFolder('skein-model-crowds');
const CLIENTS = 16;
const IO = `input: [{name: X, data_type: TYPE_INT32, dims: [1]}]
output: [{name: Y, data_type: TYPE_INT32, dims: [1]}, {name: PID, data_type: TYPE_INT32, dims: [1]}]\n`;

/** Y = X, PID = the instance's process; a batch takes a moment, so that one runs when a process is killed. */
const MODULE = `export async function execute(requests) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  return requests.map(({ inputs: { X } }) => ({ outputs: { Y: X, PID: { data: [process.pid] } } }));
}`;

let server: SkeinProcess;

function write(name: string, config: string): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.yaml'), `backend: module\n${config}${IO}`);
  writeFileSync(join(folder, name, '1/model.mjs'), MODULE);
}

beforeAll(async () => {
  for (const name of ['a', 'b', 'c']) write(name, 'max_batch_size: 4\ndynamic_batching: {}\n');
  write(
    'killed',
    `max_batch_size: 4
dynamic_batching: {preferred_batch_size: [4], max_queue_delay_microseconds: 5000}
instance_group: [{count: 2}]
parameters: {instance_kind: process}\n`,
  );
  const repository = ['--model-repository', folder, '--model-control-mode', 'explicit'];
  server = await startServer([...repository, '--load-model', 'killed']);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  status: number;
  outputs?: { name: string; data: number[] }[];
}

async function infer(model: string, value: number): Promise<Answer> {
  const response = await postJson(`${server.url}/v2/models/${model}/infer`, {
    inputs: [{ name: 'X', datatype: 'INT32', shape: [1, 1], data: [value] }],
  });
  return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) };
}

const NAMES = ['a', 'b', 'c'];
/** Loads and unloads that contradict each other, of all models in turns. */
const COMMANDS = Array.from({ length: draws(30) }, (_, i) => ({
  name: NAMES[i % NAMES.length]!,
  command: (i * 7) % 5 < 3 ? ('load' as const) : ('unload' as const),
}));
/** The last command for each model. */
const LAST = NAMES.map((name) => COMMANDS.findLast((one) => one.name === name)!);

describe('models that come and go while clients ask', () => {
  it('answer or are not there, and are in the end as the last command has it', async () => {
    const seen = new Map<number, number>();
    let isOver = false;
    const client = async (number: number) => {
      for (let i = number; !isOver; i++) {
        const { status, outputs } = await infer(NAMES[i % NAMES.length]!, i);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        if (status === 200) expect(outputs![0]!.data).toEqual([i]);
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, i) => client(i));
    const send = async ({ name, command }: (typeof COMMANDS)[number]) => {
      const response = await postJson(`${server.url}/v2/repository/models/${name}/${command}`, {});
      await response.text();
      return response.status;
    };
    const statuses = await Promise.all(COMMANDS.map(send));
    for (const last of LAST) statuses.push(await send(last));
    for (const { name, command } of LAST) {
      const isLoaded = command === 'load';
      expect((await fetch(`${server.url}/v2/models/${name}/ready`)).status, name).toBe(isLoaded ? 200 : 400);
      expect((await infer(name, 1)).status, name).toBe(isLoaded ? 200 : 404);
    }
    isOver = true;
    await Promise.all(clients);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    expect([...seen.keys()].filter((status) => ![200, 400, 404, 503].includes(status))).toEqual([]);
    expect(seen.get(200)).toBeGreaterThan(0);
    expect((await fetch(`${server.url}/v2/health/ready`)).status).toBe(200);
  });

  it('are so in a program, in the order of its calls', async () => {
    const models = await ModelServer.open({ modelRepository: folder, loadModels: ['a'] });
    const kinds = new Set<string>();
    let isOver = false;
    const client = async (number: number) => {
      for (let i = number; !isOver; i++) {
        const asked = models.infer({ model: NAMES[i % NAMES.length]!, inputs: { X: { data: [i] } } });
        kinds.add(
          await asked.then(
            ({ outputs }) => (outputs.Y!.data[0] === i ? 'answered' : 'wrong'),
            (error: unknown) => (error instanceof InferError ? error.kind : String(error)),
          ),
        );
        await setImmediate();
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, i) => client(i));
    await Promise.all(COMMANDS.map(({ name, command }) => models[command](name)));
    for (const { name, command } of LAST) expect(models.isReady(name), name).toBe(command === 'load');
    isOver = true;
    await Promise.all(clients);
    expect(
      [...kinds].filter((kind) => !['answered', 'invalid', 'notFound', 'unavailable'].includes(kind)),
    ).toEqual([]);
    await models.close();
  });
});

interface Statistics {
  inference_count: number;
  execution_count: number;
  inference_stats: Record<'success' | 'fail', { count: number }>;
}

describe('an instance in a process that is killed', () => {
  it('fails its batch alone, and the counters say exactly that', async () => {
    const pids = new Map<number, number>();
    const answered: Answer[] = [];
    let isOver = false;
    const client = async (number: number) => {
      for (let i = 0; !isOver; i++) {
        const answer = await infer('killed', 100 * i + 10 + number);
        answered.push(answer);
        const pid = answer.outputs?.[1]?.data[0];
        if (pid !== undefined) pids.set(pid, (pids.get(pid) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: 8 }, (_, i) => client(i));
    await expect.poll(() => pids.size).toBe(2);
    const [killed, other] = [...pids.keys()];
    // It stands still before it is killed, until it has a batch: it is the free one for each that comes while the other is at one.
    await stopProcess(killed!);
    const before = pids.get(other!)!;
    await expect.poll(() => pids.get(other!)!).toBeGreaterThan(before + 3 * 4);
    process.kill(killed!, 'SIGKILL');
    // The third one was restarted.
    await expect.poll(() => pids.size).toBe(3);
    isOver = true;
    await Promise.all(clients);
    const failed = answered.filter(({ status }) => status !== 200);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThanOrEqual(4);
    expect(new Set(failed.map(({ status }) => status))).toEqual(new Set([500]));
    const statistics = async () => {
      const response = await fetch(`${server.url}/v2/models/killed/stats`);
      return ((await response.json()) as { model_stats: Statistics[] }).model_stats[0]!;
    };
    const { inference_count, inference_stats } = await statistics();
    const succeeded = answered.length - failed.length;
    expect([inference_count, inference_stats.success.count]).toEqual([succeeded, succeeded]);
    expect(inference_stats.fail.count).toBe(failed.length);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    const counted = (name: string) =>
      metrics
        .split('\n')
        .filter((line) => line.startsWith(`${name}{`) && line.includes('model="killed"'))
        .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
    expect(counted('nv_inference_request_success')).toBe(succeeded);
    expect(counted('nv_inference_request_failure')).toBe(failed.length);
  });
});
