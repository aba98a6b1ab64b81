import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import type { MissingRanks } from '../../../callbacks/ranks-options.js';
import { freePort } from '../../../tools/support/free-port.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { answers, poll, RankManagers, request, SECRET } from '../../support/rank-managers.js';

const folder = temporaryFolder('skein-managers');
const managers = new RankManagers();
afterEach(() => managers.end());
afterAll(() => managers.remove());

const expected = async () => answers(await managers.start(), [1n, 2n]);

it.each(['shared memory', 'TCP'])('ranks that meet answer as one process does, by %s', async (way) => {
  const port = await freePort();
  const place =
    way === 'TCP' ? { address: `127.0.0.1:${port}`, secret: SECRET } : { address: join(folder, 'met.sock') };
  const follower = await managers.startRank({ ...place, rank: 1 });
  const leader = await managers.startRank({ ...place, rank: 0 });
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
    managers.startRank({ ...place, rank }, {}, { getInferenceRequests: bringer(rank) });
  const ranks = [await startOf(1), await startOf(0)] as const;
  await poll(() => ranks[1].states.some(([state]) => state === 'restarting'));
  // Until then either may have got more of the answer than the other.
  const responsesOf = () =>
    ranks.map(({ responses }) => responses.get(1n)?.filter(({ error }) => error === '') ?? []);
  await poll(() => responsesOf().every(({ length }) => length > 0));
  const [first, second] = responsesOf() as [unknown[], unknown[]];
  const common = Math.min(first.length, second.length);
  expect(first.slice(0, common)).toEqual(second.slice(0, common));
  const [, reason] = ranks[1].states.find(([state]) => state === 'restarting')!;
  expect(reason).toContain('Rank 1 brought other requests than rank 0');
  // What each of them brought alone has one final response, with the reason.
  for (const [rank, id] of [
    [1, 2n],
    [0, 3n],
  ] as const) {
    await poll(() => ranks[rank].finals.includes(id));
    const responses = ranks[rank].responses.get(id)!;
    expect(responses).toHaveLength(1);
    expect(responses[0]!.error).toContain('Rank 1 brought other requests than rank 0');
  }
});

it('they meet again when one of them comes anew', async () => {
  const place = { address: join(folder, 'again.sock') };
  const told: string[] = [];
  const onMissing = ({ ranks }: MissingRanks) => void told.push(ranks.join());
  // The first time is limited, and no attempt to come back counts as a failure.
  const leader = await managers.startRank(
    { ...place, rank: 0, onMissing },
    { workerRestart: { delayMs: 1, maxFailedStarts: 1 } },
  );
  const first = await managers.startRank({ ...place, rank: 1 });
  await leader.manager.ready;
  await first.manager.terminate();
  await poll(() => leader.manager.state === 'restarting');
  expect(leader.states.at(-1)![1]).toContain('ank 1');
  await poll(() => told.length === 3);
  await managers.startRank({ ...place, rank: 1 });
  expect(await answers(leader, [1n, 2n])).toEqual(await expected());
  expect(told).toEqual(['1', '', '1', '']);
  expect(leader.states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
});

it('they are refused with another secret, another size, another model', async () => {
  const port = await freePort();
  const place = { address: `127.0.0.1:${port}`, secret: SECRET };
  const leader = await managers.startRank({ ...place, rank: 0 });
  const stranger = await managers.startRank({ ...place, rank: 1, secret: 'another secret of the tests' });
  await expect(stranger.manager.ready).rejects.toThrow('it has not the secret that rank 0 has');
  const wide = await managers.startRank({ ...place, rank: 1 }, { pipelineParallelSize: 2 });
  await expect(wide.manager.ready).rejects.toThrow(
    'Rank 1 is of a group of 1 x 2 ranks, but rank 0 of one of 2 x 1.',
  );
  const other = { enginePath: await managers.engine('f32') };
  const heavy = await managers.startRank({ ...place, rank: 1 }, {}, other);
  await expect(heavy.manager.ready).rejects.toThrow(
    'Rank 1 has another model than rank 0, or other weights; give all ranks the same engine.',
  );
  // None of them has ended rank 0, which still waits.
  await managers.startRank({ ...place, rank: 1 });
  await leader.manager.ready;
});

it('they say which have not come', async () => {
  const address = join(folder, 'alone.sock');
  const leader = await managers.startRank({ address, rank: 0, joinTimeoutMs: 200 });
  await expect(leader.manager.ready).rejects.toThrow('Of 2 ranks these have not joined within 200 ms: 1.');
});
