import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { GptManagerOptions, InferenceRequest, OptionalParams, RanksOptions } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Response } from '../../../callbacks/unpack-responses.js';
import type { Engine } from '../../../engine/building/engine.js';
import { bool, i32, makeRequest, text } from '../../../tools/support/loop-harness.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { ManagerClient } from '../../support/manager-client.js';

const SECRET = 'a secret of the tests';
const QUICK = { delayMs: 1, maxDelayMs: 20, maxFailedStarts: 100 };
const TOKENS = 24;
/** Outputs that two runs of one request differ in; a guide may be ready an iteration sooner. */
const VARIABLE = new Set(['random_seed', 'request_times_ms', 'num_iterations']);

const engines = new TestEngines();
const folder = temporaryFolder('skein-managers');
let engine: Engine;
let other: Engine;
beforeAll(async () => {
  engine = await engines.get(tinyModelPath('gqa'), 'bf16');
  other = await engines.get(tinyModelPath('gqa'), 'f32');
});
afterAll(() => engines.remove());

const clients: ManagerClient[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map(({ manager }) => manager.terminate()));
});

function start(optionalParams: OptionalParams, more: Partial<GptManagerOptions> = {}): ManagerClient {
  const client = new ManagerClient({
    enginePath: engine.directory,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    optionalParams: { threads: 1, maxSeqLen: 128, workerRestart: QUICK, ...optionalParams },
    ...more,
  });
  clients.push(client);
  return client;
}

/** One rank of a group whose ranks this test starts; those that follow are processes. */
function startRank(
  ranks: Omit<RanksOptions, 'size'>,
  optionalParams: OptionalParams = {},
  enginePath = engine.directory,
  callbacks: Partial<GptManagerOptions> = {},
) {
  const place = { size: 2, joinTimeoutMs: 20_000, ...ranks };
  return start({ isolate: ranks.rank > 0, ...optionalParams }, { enginePath, ranks: place, ...callbacks });
}

const request = (id: bigint) => makeRequest(id, [5, 6, 7, Number(id) % 50], TOKENS);

async function answers(
  client: ManagerClient,
  ids: readonly bigint[],
  requestOf: (id: bigint) => InferenceRequest = request,
): Promise<{ error: string; outputs: Response['outputs'] }[]> {
  await Promise.all(ids.map((id) => client.submit(requestOf(id))));
  return ids.map((id) => {
    const { error, outputs } = client.responses.get(id)!.at(-1)!;
    return {
      error,
      outputs: outputs.filter(({ name }) => !VARIABLE.has(name)),
    };
  });
}

async function poll(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Ids of the ranks' processes that this one has started. */
function followers(): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const parent = Number(/\) \S (\d+)/.exec(readFileSync(join('/proc', name, 'stat'), 'utf8'))?.[1]);
      const isRank = readFileSync(join('/proc', name, 'cmdline'), 'utf8').includes('worker-process');
      return parent === process.pid && isRank ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('ranks that a manager starts', () => {
  it('answer as one process does', async () => {
    const expected = await answers(start({}), [1n, 2n]);
    const client = start({ tensorParallelSize: 2 });
    expect(await answers(client, [1n, 2n])).toEqual(expected);
    await client.manager.shutdown();
    expect(client.states.at(-1)).toEqual(['stopped', null]);
    await poll(() => followers().length === 0);
  });

  it('follow guides as one process does', async () => {
    const guided = (id: bigint) => {
      const inputs = {
        guided_decoding_guide_type: text('choice'),
        guided_decoding_guide: text(JSON.stringify([`answer ${id}`, `another ${id}`])),
        end_id: i32(0),
        streaming: bool(false),
      };
      return makeRequest(id, [5, 6, 7, Number(id)], TOKENS, inputs);
    };
    const expected = await answers(start({}), [1n, 2n], guided);
    expect(expected.map(({ error }) => error)).toEqual(['', '']);
    expect(expected[0]!.outputs).not.toEqual((await answers(start({}), [1n]))[0]!.outputs);
    expect(await answers(start({ tensorParallelSize: 2 }), [1n, 2n], guided)).toEqual(expected);
  });

  it('check drafts as one process does, those of a request and those of n-grams', async () => {
    const whole = (id: bigint) => {
      const prompt = [5, 6, 7, Number(id), 5, 6, 7, Number(id), 5, 6];
      return makeRequest(id, prompt, TOKENS, { streaming: bool(false) });
    };
    const expected = await answers(start({}), [1n, 2n], whole);
    const drafted = (id: bigint) => {
      const { outputs } = expected[Number(id) - 1]!;
      const ids = outputs.find(({ name }) => name === 'output_ids')!.data as Int32Array;
      // Six right tokens and a wrong one.
      const draft = ids.slice(-TOKENS).slice(0, 7);
      draft[6] = draft[6] === 9 ? 8 : 9;
      const request = whole(id);
      return { ...request, inputs: { ...request.inputs, draft_input_ids: { shape: [7], data: draft } } };
    };
    const client = start({ statsFormat: 'IterationStats', pipelineParallelSize: 2, speculate: 'ngram' });
    expect(await answers(client, [1n, 2n], drafted)).toEqual(expected);
    expect(client.stats.join('\n')).toMatch(/"numAcceptedTokens":[1-9]/);
    const shared = start({ tensorParallelSize: 2, speculate: 'ngram' });
    expect(await answers(shared, [1n, 2n], whole)).toEqual(expected);
  });

  it('fail what is active once when one is killed, and come back together', async () => {
    const client = start({ tensorParallelSize: 2, pipelineParallelSize: 2 });
    await client.manager.ready;
    const before = followers();
    expect(before).toHaveLength(3);
    const [failed] = await Promise.all([
      client.submit(makeRequest(1n, [5, 6], 100)),
      poll(() => client.manager.numInFlight > 0).then(() => process.kill(before[1]!, 'SIGKILL')),
    ]);
    expect(failed).toBeUndefined();
    const error = client.responses.get(1n)!.at(-1)!.error;
    // A rank may notice before the system tells of the death.
    expect(error).toMatch(/The engine failed: .*[Rr]ank [0-3]/);
    expect(client.responses.get(1n)!.filter(({ final }) => final)).toHaveLength(1);
    const alone = await answers(start({}), [2n]);
    expect(await answers(client, [2n])).toEqual(alone);
    expect(followers().some((pid) => before.includes(pid))).toBe(false);
    expect(client.states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
  });

  it('wait for one that is stopped, up to the limit', async () => {
    const client = start({ tensorParallelSize: 2, rankTimeoutMs: 3000 });
    await client.manager.ready;
    const [follower] = followers();
    process.kill(follower!, 'SIGSTOP');
    const done = client.submit(request(1n));
    await poll(() => client.manager.numInFlight > 0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(client.finals).toEqual([]);
    process.kill(follower!, 'SIGCONT');
    await done;
    expect(client.responses.get(1n)!.at(-1)!.error).toBe('');
    process.kill(follower!, 'SIGSTOP');
    await client.submit(request(2n));
    expect(client.responses.get(2n)!.at(-1)!.error).toContain('within 3000 ms');
    expect((await answers(client, [3n])).length).toBe(1);
  });
});

describe('ranks that meet at an address', () => {
  const expected = () => answers(start({}), [1n, 2n]);

  it.each(['shared memory', 'TCP'])('answer as one process does, by %s', async (way) => {
    const port = await freePort();
    const place =
      way === 'TCP'
        ? { address: `127.0.0.1:${port}`, secret: SECRET }
        : { address: join(folder, 'met.sock') };
    const follower = startRank({ ...place, rank: 1 });
    const leader = startRank({ ...place, rank: 0 });
    expect(await answers(leader, [1n, 2n])).toEqual(await expected());
    expect(await follower.manager.ready).toEqual(leader.manager.info);
    expect(follower.finals).toEqual([]);
    await leader.manager.shutdown();
    await follower.manager.ended;
    expect(follower.states.at(-1)).toEqual(['stopped', null]);
  });

  it('all bring the same requests and get the same responses, or end', async () => {
    const place = { address: join(folder, 'every.sock'), requests: 'everyRank' } as const;
    // Every call of rank 0's callback is one of rank 1's: the third brings the same, the sixth does not.
    const bringer = (rank: number) => {
      let calls = 0;
      return () => {
        calls++;
        if (calls === 3) return [request(1n)];
        return calls === 6 ? [request(BigInt(2 + rank))] : [];
      };
    };
    const startOf = (rank: number) =>
      startRank({ ...place, rank }, {}, engine.directory, { getInferenceRequests: bringer(rank) });
    const ranks = [startOf(1), startOf(0)] as const;
    await poll(() => ranks[1].states.some(([state]) => state === 'restarting'));
    const first = ranks.map(({ responses }) => responses.get(1n));
    expect(first[0]!.length).toBeGreaterThan(0);
    expect(first[0]).toEqual(first[1]!.slice(0, first[0]!.length));
    const [, reason] = ranks[1].states.find(([state]) => state === 'restarting')!;
    expect(reason).toContain('Rank 1 brought other requests than rank 0');
  });

  it('meet again when one of them comes anew', async () => {
    const place = { address: join(folder, 'again.sock') };
    const leader = startRank({ ...place, rank: 0 });
    const first = startRank({ ...place, rank: 1 });
    await leader.manager.ready;
    await first.manager.terminate();
    await poll(() => leader.manager.state === 'restarting');
    expect(leader.states.at(-1)![1]).toContain('ank 1');
    startRank({ ...place, rank: 1 });
    expect(await answers(leader, [1n, 2n])).toEqual(await expected());
  });

  it('are refused with another secret, another size, another model', async () => {
    const port = await freePort();
    const place = { address: `127.0.0.1:${port}`, secret: SECRET, joinTimeoutMs: 3000 };
    const leader = startRank({ ...place, rank: 0 });
    const stranger = startRank({ ...place, rank: 1, secret: 'another secret of the tests' });
    await expect(stranger.manager.ready).rejects.toThrow('it has not the secret that rank 0 has');
    const wide = startRank({ ...place, rank: 1 }, { pipelineParallelSize: 2 });
    await expect(wide.manager.ready).rejects.toThrow(
      'Rank 1 is of a group of 1 x 2 ranks, but rank 0 of one of 2 x 1.',
    );
    startRank({ ...place, rank: 1 }, {}, other.directory);
    await expect(leader.manager.ready).rejects.toThrow(
      'Rank 1: It has another model than rank 0, or other weights',
    );
  });

  it('say which have not come', async () => {
    const leader = startRank({ address: join(folder, 'alone.sock'), rank: 0, joinTimeoutMs: 200 });
    await expect(leader.manager.ready).rejects.toThrow('Of 2 ranks these have not joined within 200 ms: 1.');
  });
});
