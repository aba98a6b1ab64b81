import { afterAll, afterEach, expect, it } from 'vitest';
import { bool, i32, makeRequest, text } from '../../../tools/support/loop-harness.js';
import {
  answers,
  draftTokens,
  isStopped,
  poll,
  RankManagers,
  rankProcesses,
  request,
  stopProcess,
} from '../../support/rank-managers.js';

const TOKENS = 24;

const managers = new RankManagers();
afterEach(() => managers.end());
afterAll(() => managers.remove());

it('ranks that a manager starts answer as one process does, and end with it', async () => {
  const expected = await answers(await managers.start(), [1n, 2n]);
  const client = await managers.start({ tensorParallelSize: 2 });
  expect(await answers(client, [1n, 2n])).toEqual(expected);
  await client.manager.shutdown();
  expect(client.states.at(-1)).toEqual(['stopped', null]);
  await poll(() => rankProcesses().length === 0);
});

it('they follow guides as one process does', async () => {
  const guided = (id: bigint) => {
    const inputs = {
      guided_decoding_guide_type: text('choice'),
      guided_decoding_guide: text(JSON.stringify([`answer ${id}`, `another ${id}`])),
      end_id: i32(0),
      streaming: bool(false),
    };
    return makeRequest(id, [5, 6, 7, Number(id)], TOKENS, inputs);
  };
  const alone = await managers.start();
  const expected = await answers(alone, [1n, 2n], guided);
  expect(expected.map(({ error }) => error)).toEqual(['', '']);
  expect((await answers(alone, [3n]))[0]!.outputs).not.toEqual(
    (await answers(alone, [4n], guided))[0]!.outputs,
  );
  expect(await answers(await managers.start({ tensorParallelSize: 2 }), [1n, 2n], guided)).toEqual(expected);
});

const whole = (id: bigint) => {
  const prompt = [5, 6, 7, Number(id), 5, 6, 7, Number(id), 5, 6];
  return makeRequest(id, prompt, TOKENS, { streaming: bool(false) });
};

it('they check drafts as one process does, those of a request and those of n-grams', async () => {
  const expected = await answers(await managers.start(), [1n, 2n], whole);
  const drafted = (id: bigint) => {
    const { outputs } = expected[Number(id) - 1]!;
    const ids = outputs.find(({ name }) => name === 'output_ids')!.data as Int32Array;
    // Six right tokens and a wrong one.
    const draft = ids.slice(-TOKENS).slice(0, 7);
    draft[6] = draft[6] === 9 ? 8 : 9;
    const request = whole(id);
    return { ...request, inputs: { ...request.inputs, draft_input_ids: { shape: [7], data: draft } } };
  };
  const client = await managers.start({
    statsFormat: 'IterationStats',
    pipelineParallelSize: 2,
    speculate: 'ngram',
  });
  expect(await answers(client, [1n, 2n], drafted)).toEqual(expected);
  expect(draftTokens(client, 'numAcceptedTokens')).toBeGreaterThan(0);
  const shared = await managers.start({ tensorParallelSize: 2, speculate: 'ngram' });
  expect(await answers(shared, [1n, 2n], whole)).toEqual(expected);
});

it.each([{ tensorParallelSize: 2 }, { pipelineParallelSize: 2 }])(
  'with %o a draft model drafts, in rank 0 alone, and changes no bit',
  async (sizes) => {
    const [target, draftEnginePath] = [await managers.engine('f32'), await managers.engine('int8')];
    const engine = { enginePath: target };
    const expected = await answers(await managers.start({}, engine), [1n, 2n, 3n], whole);
    const drafting = { statsFormat: 'IterationStats', draftEnginePath } as const;
    const client = await managers.start({ ...sizes, ...drafting }, engine);
    // One after the other: a step of one row has the most room for drafts. Whether they pay is measured, and on a busy machine they may
    // seem not to for a while: the same requests come again until some were drafted.
    let id = 0n;
    do {
      const first = id;
      for (const place of [1n, 2n, 3n]) {
        const [found] = await answers(client, [++id], (id) => ({ ...whole(place), requestId: id }));
        expect(found).toEqual(expected[Number(id - first) - 1]);
      }
    } while (draftTokens(client, 'numAcceptedTokens') === 0);
    expect(client.manager.info!.memory.draft!.weightBytes).toBeGreaterThan(0);
  },
);

it('they fail what is active once when one is killed, and come back together', async () => {
  const client = await managers.start({ tensorParallelSize: 2, pipelineParallelSize: 2 });
  await client.manager.ready;
  const before = rankProcesses();
  expect(before).toHaveLength(3);
  // It stands still, so that the request cannot end before it is killed.
  await stopProcess(before[1]!);
  const done = client.submit(makeRequest(1n, [5, 6], 100));
  await poll(() => client.manager.numInFlight > 0);
  process.kill(before[1]!, 'SIGKILL');
  await done;
  const error = client.responses.get(1n)!.at(-1)!.error;
  // A rank may notice before the system reports the death.
  expect(error).toMatch(/The engine failed: .*[Rr]ank [0-3]/);
  expect(client.responses.get(1n)!.filter(({ final }) => final)).toHaveLength(1);
  const alone = await answers(await managers.start(), [2n]);
  expect(await answers(client, [2n])).toEqual(alone);
  expect(rankProcesses().some((pid) => before.includes(pid))).toBe(false);
  expect(client.states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
});

/** Stops the process of a rank in its first moment, and no other one that is started meanwhile. */
const STANDS_STILL = `
  import { isMainThread } from 'node:worker_threads';
  if (isMainThread && process.argv[1]?.includes('worker-process')) process.kill(process.pid, 'SIGSTOP');`;

/** A group whose rank 1 stands still before it has the model, so that it cannot be ready. */
async function groupThatLoads() {
  const { NODE_OPTIONS } = process.env;
  process.env.NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(STANDS_STILL)}`;
  const client = await managers.start({ tensorParallelSize: 2 });
  client.manager.ready.catch(() => {});
  await poll(() => rankProcesses().length === 1);
  if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
  else process.env.NODE_OPTIONS = NODE_OPTIONS;
  const [rank] = rankProcesses();
  await poll(() => isStopped(rank!));
  return { client, rank: rank! };
}

it('a rank that is killed before the group is ready ends the start with one reason', async () => {
  const { client, rank } = await groupThatLoads();
  process.kill(rank, 'SIGKILL');
  await expect(client.manager.ready).rejects.toThrow(/^Rank 1's process was ended by SIGKILL/);
  await poll(() => rankProcesses().length === 0);
  expect(client.states.map(([state]) => state)).toEqual(['failed']);
});

it('a group that loads is ended as a whole, though a rank stands still', async () => {
  const { client } = await groupThatLoads();
  await client.manager.terminate();
  await poll(() => rankProcesses().length === 0);
  await expect(client.manager.ready).rejects.toThrow();
});

it('they wait for one that is stopped, up to the limit', async () => {
  const limit = 5000;
  const client = await managers.start({ tensorParallelSize: 2, rankTimeoutMs: limit });
  await client.manager.ready;
  const [follower] = rankProcesses();
  await stopProcess(follower!);
  const done = client.submit(request(1n));
  await poll(() => client.manager.numInFlight > 0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(client.finals).toEqual([]);
  process.kill(follower!, 'SIGCONT');
  await done;
  expect(client.responses.get(1n)!.at(-1)!.error).toBe('');
  await stopProcess(follower!);
  await client.submit(request(2n));
  expect(client.responses.get(2n)!.at(-1)!.error).toContain(`within ${limit} ms`);
  const [again] = await answers(client, [3n]);
  expect(again!.error).toBe('');
});
