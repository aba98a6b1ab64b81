import { describe, expect, it } from 'vitest';
import {
  CHECK_LIMITS,
  type Checked,
  findingsOf,
  type ProcessHealth,
  summarizeHealth,
} from '../../loadgen/metrics/checks.js';
import { LatencyHistogram } from '../../loadgen/metrics/latency-histogram.js';
import type { ClientHealth } from '../../loadgen/worker/frames.js';

const second = (more: Partial<ClientHealth> = {}): ClientHealth => ({
  ...{ eventLoopUtilization: 0.2, loopDelayP99Ms: 1, loopDelayMaxMs: 2, gcMs: 5, cpu: 0.2 },
  ...{ opened: 4, seconds: 1, ...more },
});
const calm: ProcessHealth = summarizeHealth([second()]);

/** All of it sent `lateMs` later than scheduled. */
function queueing(lateMs: number): LatencyHistogram {
  const histogram = new LatencyHistogram();
  histogram.record(lateMs, 100);
  return histogram;
}

const checked = (more: Partial<Checked> = {}): Checked => ({
  ...{ workers: [calm], coordinator: calm, queueing: queueing(1), ttftP50Ms: 100 },
  ...{ offeredRate: 10, issuedRate: 10, isClosedLoop: false, mostWaiting: 0, clientLimits: 0, seconds: 10 },
  ...more,
});
const found = (more: Partial<Checked>) =>
  findingsOf(checked(more)).map(({ code, isBottleneck }) => [code, isBottleneck]);

describe('what the client says of itself', () => {
  it('is nothing where it had time for all it did', () => {
    expect(findingsOf(checked())).toEqual([]);
  });

  it('event loop: busy all the time is a bottleneck, a busy second is told', () => {
    const busy = summarizeHealth([second({ eventLoopUtilization: 0.95, cpu: 0.85 })]);
    expect(found({ workers: [calm, busy] })).toEqual([['event-loop-busy', true]]);
    expect(findingsOf(checked({ workers: [calm, busy] }))[0]!.message).toMatch(/^Worker 1 was busy 95 %/);
    const once = summarizeHealth([second({ eventLoopUtilization: 0.95, cpu: 0.85 }), second()]);
    expect(found({ workers: [once] })).toEqual([['event-loop-busy', false]]);
    expect(found({ coordinator: busy })).toEqual([['event-loop-busy', true]]);
  });

  it('event-loop delay: against a bound, or a share of the median time to first token', () => {
    const late = summarizeHealth([second({ loopDelayP99Ms: 30 })]);
    expect(found({ workers: [late] })).toEqual([['event-loop-delay', true]]);
    expect(found({ workers: [late], ttftP50Ms: 1000 })).toEqual([]);
    expect(found({ workers: [summarizeHealth([second({ loopDelayP99Ms: 60 })])], ttftP50Ms: 1000 })).toEqual([
      ['event-loop-delay', true],
    ]);
  });

  it('garbage collection and processor time', () => {
    expect(found({ workers: [summarizeHealth([second({ gcMs: 150 })])] })).toEqual([['gc', true]]);
    expect(found({ workers: [summarizeHealth([second({ cpu: 0.97 })])] })).toEqual([['cpu', true]]);
    // Seconds in which it was busy and did not run: another process had the processor.
    const starved = summarizeHealth([second({ eventLoopUtilization: 0.8, cpu: 0.2 })]);
    expect(found({ workers: [starved] })).toEqual([['cpu', true]]);
    expect(findingsOf(checked({ workers: [starved] }))[0]!.message).toContain('without a processor');
  });

  it('says nothing of how busy processes are that have only just started', () => {
    const busy = summarizeHealth([second({ eventLoopUtilization: 0.99, loopDelayP99Ms: 90, cpu: 1 })]);
    const seconds = CHECK_LIMITS.seconds / 2;
    expect(found({ workers: [busy], coordinator: busy, seconds })).toEqual([]);
  });

  it('offered against achieved', () => {
    expect(found({ issuedRate: 9.7 })).toEqual([['offered-not-achieved', true]]);
    expect(found({ issuedRate: 9.9 })).toEqual([]);
    expect(found({ issuedRate: 1, offeredRate: null })).toEqual([]);
  });

  it('late sending of an open loop, waiting for a connection, limits of the machine', () => {
    expect(found({ queueing: queueing(12) })).toEqual([['late-issues', true]]);
    expect(found({ queueing: queueing(12), isClosedLoop: true })).toEqual([]);
    expect(found({ queueing: queueing(12), mostWaiting: 3 })).toEqual([['slots', true]]);
    expect(found({ clientLimits: 2 })).toEqual([['client-limit', true]]);
  });

  it('sums seconds up: means by their length, the worst of those that are long enough, connections at the end', () => {
    const health = summarizeHealth([
      second({ seconds: 1, eventLoopUtilization: 0.4, gcMs: 20, opened: 1 }),
      second({ seconds: 0.1, eventLoopUtilization: 1, loopDelayMaxMs: 50, gcMs: 2, opened: 3 }),
    ]);
    expect(health.eventLoopUtilization.mean).toBeCloseTo(0.5 / 1.1, 9);
    expect(health).toMatchObject({
      eventLoopUtilization: { max: 0.4 },
      loopDelayMaxMs: 2,
      connectionsOpened: 3,
    });
    expect(health.gc).toBeCloseTo(0.02, 9);
  });
});
