import { expect, it } from 'vitest';
import { CancelledRequests } from '../../../engine/backends/cancelled-requests.js';
import type { RunningRequest } from '../../../engine/backends/running-request.js';

const request = () => {
  const made = {
    isCancelled: false,
    cancel() {
      made.isCancelled = true;
    },
  };
  return made as unknown as RunningRequest;
};
const of = (requests: readonly RunningRequest[]) => requests.map(({ isCancelled }) => isCancelled);
const cancelled = (batch: number, index: number) => ({ type: 'cancelled', batch, request: index }) as const;

it('cancels requests of the batch that runs, and of one that begins later', () => {
  const noted = new CancelledRequests();
  const batches = [1, 2, 3].map(() => [request(), request()]);
  noted.begin(7, batches[0]!);
  noted.note(cancelled(7, 1));
  noted.note(cancelled(9, 0));
  noted.note(cancelled(6, 0)); // over here, and not yet at the host
  noted.note(cancelled(7, 5));
  noted.begin(8, batches[1]!);
  noted.note(cancelled(7, 0));
  noted.begin(9, batches[2]!);
  expect(batches.map(of)).toEqual([
    [false, true],
    [false, false],
    [true, false],
  ]);
});

it('forgets a batch that is not run here', () => {
  const noted = new CancelledRequests();
  const batch = [request()];
  noted.note(cancelled(4, 0));
  noted.drop(4);
  noted.begin(4, batch);
  expect(of(batch)).toEqual([false]);
});
