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
    terminateReqId: 9n,
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
  return { callbacks: leader.callbacks, followers, lost, sent };
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
  // Rank 0 gives out what it has taken: it ends with the group, with a final response.
  expect(await callbacks.getInferenceRequests(4)).toEqual([request(1n, 5)]);
  expect(lost).toEqual([
    'Rank 2 brought other requests than rank 0; the callbacks of all ranks must bring the same.',
  ]);
});

test('what the others brought has one final response when the group ends, with its reason', async () => {
  const { callbacks, followers, sent } = group([
    [request(1n, 5), request(2n, 5), request(9n, 5)],
    [request(1n, 5), request(2n, 5), request(9n, 5)],
  ]);
  await callbacks.getInferenceRequests(4);
  await callbacks.sendResponse(1n, [], true, '');
  for (const _ of [1, 2]) followers[0]!.fail(new Error('Rank 0 is gone.'));
  const why = 'The engine failed: Rank 0 is gone.';
  expect(sent[1]).toEqual([
    [1n, [], true, ''],
    [2n, [], true, why, { kind: 'internal', field: null, text: why }],
  ]);
});
