import { expect, test } from 'vitest';
import type { InferenceRequest } from '../../../callbacks/types.js';
import { EveryRankFollower, EveryRankLeader, type EveryRankMessage } from '../../../host/ranks/every-rank.js';

const request = (requestId: bigint, token: number): InferenceRequest => ({
  requestId,
  inputs: { input_ids: { shape: [1, 1], data: Int32Array.of(token) } },
});

function group(brings: readonly (readonly InferenceRequest[])[]) {
  const lost: string[] = [];
  const sent: unknown[][] = brings.map(() => []);
  const callbacksOf = (rank: number) => ({
    getInferenceRequests: () => [...brings[rank]!],
    sendResponse: (...response: unknown[]) => void sent[rank]!.push(response),
  });
  const followers = brings.slice(1).map(
    (_, i) =>
      new EveryRankFollower(
        callbacksOf(i + 1),
        (answer) => leader.receive(i + 1, answer),
        () => {},
      ),
  );
  const tell = (message: EveryRankMessage) => {
    for (const follower of followers) void follower.receive(message);
  };
  const leader = new EveryRankLeader(callbacksOf(0), followers.length, tell, (reason) => lost.push(reason));
  return { callbacks: leader.callbacks, lost, sent };
}

test('requests count when every rank has brought the same, and every rank gets the responses', async () => {
  const { callbacks, lost, sent } = group([
    [request(1n, 5)],
    [{ ...request(1n, 5), arrivalTimeMs: 9 }],
    [request(1n, 5)],
  ]);
  expect(await callbacks.getInferenceRequests(4)).toEqual([request(1n, 5)]);
  await callbacks.sendResponse(1n, [], true, '');
  expect(sent).toEqual([[[1n, [], true, '']], [[1n, [], true, '']], [[1n, [], true, '']]]);
  expect(lost).toEqual([]);
});

test('answers that differ end the group by name', async () => {
  const { callbacks, lost } = group([[request(1n, 5)], [request(1n, 5)], [request(1n, 6)]]);
  await expect(callbacks.getInferenceRequests(4)).rejects.toThrow(
    'Rank 2 brought other requests than rank 0',
  );
  expect(lost).toHaveLength(1);
});
