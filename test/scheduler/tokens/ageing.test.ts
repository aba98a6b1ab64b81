import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ActiveRequests } from '../../../engine/request/active-requests.js';
import { SimulatedRequest } from '../../../engine/simulation/simulated-request.js';
import { passLaterArrivals } from '../../../scheduler/tokens/ageing.js';
import { LoopHarness, makeRequest } from '../../../tools/support/loop-harness.js';

const list = (...arrivals: number[]) => arrivals.map((arrivalNumber) => ({ arrivalNumber }));

describe('passLaterArrivals', () => {
  it.each([
    {
      what: 'past later ones, with the earlier one before it',
      place: 4,
      before: [1, 7, 3, 9, 5, 6],
      after: [1, 3, 5, 7, 9, 6],
    },
    {
      what: 'nowhere where only earlier ones stand before it',
      place: 2,
      before: [1, 3, 5, 4],
      after: [1, 3, 5, 4],
    },
    { what: 'not past later ones behind it', place: 0, before: [4, 5, 1], after: [4, 5, 1] },
    { what: 'to the head', place: 2, before: [8, 9, 2], after: [2, 8, 9] },
  ])('moves a request $what', ({ place, before, after }) => {
    const requests = list(...before);
    passLaterArrivals(requests, place);
    expect(requests).toEqual(list(...after));
  });

  it('lets only earlier arrivals pass, and only later ones be passed', () => {
    const shuffled = fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], { minLength: 1 });
    fc.assert(
      fc.property(shuffled, fc.nat({ max: 9 }), (arrivals, choice) => {
        const place = choice % arrivals.length;
        const moved = list(...arrivals);
        passLaterArrivals(moved, place);
        const order = moved.map(({ arrivalNumber }) => arrivalNumber);
        expect(order.toSorted()).toEqual(arrivals.toSorted());
        expect(order.slice(0, order.indexOf(arrivals[place]!)).every((n) => n < arrivals[place]!)).toBe(true);
        for (const [at, left] of arrivals.entries()) {
          for (const right of arrivals.slice(at + 1)) {
            if (order.indexOf(right) < order.indexOf(left)) expect(right).toBeLessThan(left);
          }
        }
      }),
    );
  });
});

describe('the list of active requests with a limit to waiting', () => {
  const request = (id: number, priority: number) =>
    new SimulatedRequest({ requestId: BigInt(id), promptLength: 4, maxNewTokens: 4, priority }, null);

  it('lets who has waited its time pass later ones, and no later one before it again', () => {
    const active = new ActiveRequests<SimulatedRequest>(10);
    const order = () => active.ordered.map(({ requestId }) => Number(requestId));
    const low = request(1, 0.1);
    for (const added of [low, request(2, 0.9), request(3, 0.1), request(4, 0.5)]) active.add(added);
    expect(order()).toEqual([2, 4, 1, 3]);
    low.waitedIterations = 9;
    active.promoteAged();
    expect(order()).toEqual([2, 4, 1, 3]);
    low.waitedIterations = 10;
    active.promoteAged();
    expect(order()).toEqual([1, 2, 4, 3]);
    active.add(request(5, 1));
    active.promoteAged();
    expect(order()).toEqual([1, 5, 2, 4, 3]);
  });

  it('has no limit unless it is given one', () => {
    const active = new ActiveRequests<SimulatedRequest>();
    const low = request(1, 0.1);
    for (const added of [low, request(2, 0.9)]) active.add(added);
    low.waitedIterations = 1e9;
    active.promoteAged();
    expect(active.ordered.map(({ requestId }) => requestId)).toEqual([2n, 1n]);
  });
});

/**
 * Iteration in which a request of low priority ends during a stream of high ones that never lets up; null:
 * not within 300.
 */
function endOfPatientRequest(options: {
  modelType?: 'V1' | 'InflightFusedBatching';
  schedulerPolicy: 'MAX_UTILIZATION' | 'GUARANTEED_NO_EVICT';
  maxWaitIterations?: number;
}): number | null {
  const harness = new LoopHarness({ maxNumSequences: 6, maxBatchSize: 2, ...options });
  harness.waiting.push(makeRequest(999n, [1, 2, 3], 4, {}, 0));
  let ended: number | null = null;
  let iteration = 0;
  harness.onResponse = ({ requestId, final }) => {
    if (requestId === 999n && final) ended = iteration;
  };
  for (; iteration < 300 && ended === null; iteration++) {
    while (harness.waiting.length < 5) {
      harness.waiting.push(
        makeRequest(BigInt(1000 + iteration * 10 + harness.waiting.length), [4], 6, {}, 1),
      );
    }
    harness.loop.iterate();
  }
  return ended;
}

describe('a request of low priority beside others that keep coming', () => {
  it.each([
    { schedulerPolicy: 'MAX_UTILIZATION' as const },
    { schedulerPolicy: 'GUARANTEED_NO_EVICT' as const },
    { modelType: 'V1' as const, schedulerPolicy: 'GUARANTEED_NO_EVICT' as const },
  ])('starves without the rule and ends with it: %o', (options) => {
    expect(endOfPatientRequest(options)).toBeNull();
    const ended = endOfPatientRequest({ ...options, maxWaitIterations: 20 });
    expect(ended).toBeGreaterThanOrEqual(20);
    expect(ended).toBeLessThan(40);
  });
});
