import { afterAll, afterEach, expect, it } from 'vitest';
import { freePort } from '../../../tools/support/free-port.js';
import { makeRequest } from '../../../tools/support/loop-harness.js';
import type { ManagerClient } from '../../support/manager-client.js';
import { type Answer, answers, poll, RankManagers, SECRET } from '../../support/rank-managers.js';
import { BadLine, type LineMode } from './bad-line.js';

const managers = new RankManagers();
const lines: BadLine[] = [];
afterEach(async () => {
  await managers.end();
  for (const line of lines.splice(0)) line.close();
});
afterAll(() => managers.remove());

/** Two ranks; the second reaches the first through a line. */
async function startThroughLine() {
  const port = await freePort();
  const line = await BadLine.open(port);
  lines.push(line);
  // Longer than a busy machine leaves a rank, or the line between them, without a processor.
  const params = { rankTimeoutMs: 3000, pipelineParallelSize: 2 };
  const place = { secret: SECRET, size: 2 };
  const leader = await managers.startRank({ ...place, rank: 0, address: `127.0.0.1:${port}` }, params);
  const follower = await managers.startRank(
    { ...place, rank: 1, address: `127.0.0.1:${line.port}` },
    { ...params, isolate: false },
  );
  await Promise.all([leader.manager.ready, follower.manager.ready]);
  return { line, leader, follower };
}

/** What one process answers to requests, which is the same for every test. */
const known = new Map<string, Promise<Answer[]>>();
function answersAlone(ids: readonly bigint[]): Promise<Answer[]> {
  const made = known.get(ids.join()) ?? managers.start().then((client) => answers(client, ids));
  known.set(ids.join(), made);
  return made;
}

/** The group is lost, and is there again. */
async function expectReturn(leader: ManagerClient, follower: ManagerClient): Promise<void> {
  expect(await answers(leader, [8n, 9n])).toEqual(await answersAlone([8n, 9n]));
  for (const { states } of [leader, follower]) {
    await poll(() => states.filter(([state]) => state === 'running').length === 2);
    expect(states.map(([state]) => state)).toEqual(['running', 'restarting', 'running']);
  }
}

it.each([
  ['is cut', (line: BadLine) => line.cut()],
  ['swallows what it is given', (line: BadLine) => (line.mode = 'swallow')],
  ['spoils it', (line: BadLine) => (line.mode = 'spoil')],
])('a line that %s fails what is active once, and the group comes back', async (_, spoil) => {
  const { line, leader, follower } = await startThroughLine();
  const done = [1n, 2n].map((id) => leader.submit(makeRequest(id, [5, 6, Number(id)], 100)));
  // Both have begun, and none has ended: each of their steps crosses the line in this thread.
  await poll(() => [1n, 2n].every((id) => leader.responses.has(id)));
  spoil(line);
  await Promise.all(done);
  line.mode = 'carry' satisfies LineMode;
  for (const id of [1n, 2n]) {
    const responses = leader.responses.get(id)!;
    expect(responses.filter(({ final }) => final)).toHaveLength(1);
    expect(responses.at(-1)!.error).toMatch(/^The engine failed: .*[Rr]ank [01]/);
  }
  await expectReturn(leader, follower);
});

it('a slow line changes no answer, and both ends notice one that dies while no request runs', async () => {
  const { line, leader, follower } = await startThroughLine();
  line.mode = 'delay';
  expect(await answers(leader, [1n, 2n])).toEqual(await answersAlone([1n, 2n]));
  expect(leader.states).toEqual([['running', null]]);
  line.mode = 'swallow';
  await poll(() => [leader, follower].every(({ states }) => states.length > 1));
  for (const [states, other] of [
    [leader.states, 1],
    [follower.states, 0],
  ] as const) {
    expect(states[1]).toEqual([
      'restarting',
      `Rank ${other} of 2 is gone: nothing has come from it for 3000 ms.`,
    ]);
  }
  line.mode = 'carry';
  await expectReturn(leader, follower);
});
