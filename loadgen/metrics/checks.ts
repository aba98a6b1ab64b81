import type { ClientHealth } from '../worker/frames.js';
import type { LatencyHistogram } from './latency-histogram.js';

/** Health of one process of the client over a run: sums and worst seconds. */
export interface ProcessHealth {
  eventLoopUtilization: { mean: number; max: number };
  loopDelayP99Ms: number;
  loopDelayMaxMs: number;
  /** Share of the time spent on garbage collection. */
  gc: number;
  cpu: { mean: number; max: number };
  connectionsOpened: number;
}

export interface Finding {
  /** Code of a reason to distrust the figures, for programs. */
  code:
    | 'event-loop-busy'
    | 'event-loop-delay'
    | 'gc'
    | 'cpu'
    | 'late-issues'
    | 'slots'
    | 'client-limit'
    | 'offered-not-achieved';
  /** True where the client was the bottleneck; else the finding is only worth knowing. */
  isBottleneck: boolean;
  /** The finding as one sentence with numbers. */
  message: string;
}

/** Limits above which a client counts as the bottleneck. */
export const CHECK_LIMITS = {
  /** Share of a second in which an event loop was busy. */
  utilization: 0.9,
  /**
   * Lateness of an event loop, in milliseconds; then as a share of the median TTFT. Shorter latencies would drown in
   * it.
   */
  delayMs: 20,
  delayShareOfTtft: 0.05,
  gcShare: 0.1,
  /** Processor time over wall time. */
  cpu: 0.9,
  /** Share of the time in which an event loop had work but its process had no processor. */
  starved: 0.3,
  /** Delay of sending relative to the schedule at p99, in milliseconds. */
  lateMs: 10,
  /** Least share of the offered requests that must be sent. */
  achieved: 0.98,
  /** Shortest time, in seconds, that shows how busy a process is; in a shorter run it is still starting. */
  seconds: 0.5,
} as const;

/** Sums up one process's health over a run. */
export function summarizeHealth(seconds: readonly ClientHealth[]): ProcessHealth {
  const total = seconds.reduce((sum, health) => sum + health.seconds, 0) || 1;
  const mean = (of: (health: ClientHealth) => number) =>
    seconds.reduce((sum, health) => sum + of(health) * health.seconds, 0) / total;
  // The last part of a second may be too short to show how busy a second is.
  const long = seconds.filter((health) => health.seconds >= 0.5);
  const judged = long.length === 0 ? seconds : long;
  const most = (of: (health: ClientHealth) => number) => Math.max(0, ...judged.map(of));
  return {
    eventLoopUtilization: {
      mean: mean((health) => health.eventLoopUtilization),
      max: most((health) => health.eventLoopUtilization),
    },
    loopDelayP99Ms: most((health) => health.loopDelayP99Ms),
    loopDelayMaxMs: most((health) => health.loopDelayMaxMs),
    gc: seconds.reduce((sum, { gcMs }) => sum + gcMs, 0) / 1000 / total,
    cpu: { mean: mean(({ cpu }) => cpu), max: most(({ cpu }) => cpu) },
    connectionsOpened: Math.max(0, ...seconds.map(({ opened }) => opened)),
  };
}

export interface Checked {
  workers: readonly ProcessHealth[];
  coordinator: ProcessHealth;
  /** Time from the scheduled sending to the real one. */
  queueing: LatencyHistogram;
  ttftP50Ms: number;
  /** Requests a second that the schedule asked for, null in a closed loop; issuedRate: those that were sent. */
  offeredRate: number | null;
  issuedRate: number;
  isClosedLoop: boolean;
  mostWaiting: number;
  clientLimits: number;
  /** Length of the run, in seconds. */
  seconds: number;
}

/** Findings about the client that may have shaped the figures. */
export function findingsOf(checked: Checked): Finding[] {
  const { utilization, gcShare, lateMs, achieved } = CHECK_LIMITS;
  const findings: Finding[] = [];
  const add = (code: Finding['code'], isBottleneck: boolean, message: string) =>
    findings.push({ code, isBottleneck, message });
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const workers = checked.seconds >= CHECK_LIMITS.seconds ? checked.workers : [];
  for (const [i, worker] of workers.entries()) {
    const { eventLoopUtilization, gc, cpu } = worker;
    if (eventLoopUtilization.mean > utilization) {
      add(
        'event-loop-busy',
        true,
        `Worker ${i} was busy ${percent(eventLoopUtilization.mean)} of the time: more workers, or a lower load.`,
      );
    } else if (eventLoopUtilization.max > utilization) {
      add(
        'event-loop-busy',
        false,
        `Worker ${i} was busy ${percent(eventLoopUtilization.max)} of its busiest second.`,
      );
    }
    if (cpu.mean > CHECK_LIMITS.cpu) {
      add(
        'cpu',
        true,
        `Worker ${i} used ${percent(cpu.mean)} of a processor: more workers, or a lower load.`,
      );
    }
    const starved = eventLoopUtilization.mean - cpu.mean;
    if (starved > CHECK_LIMITS.starved) {
      add(
        'cpu',
        true,
        `Worker ${i} had work but was without a processor ${percent(starved)} of the time: something else has the machine.`,
      );
    }
    if (gc > gcShare) add('gc', true, `Worker ${i} collected garbage ${percent(gc)} of the time.`);
  }
  const delay = Math.max(0, ...workers.map(({ loopDelayP99Ms }) => loopDelayP99Ms));
  const bound = Math.max(CHECK_LIMITS.delayMs, CHECK_LIMITS.delayShareOfTtft * (checked.ttftP50Ms || 0));
  if (delay > bound) {
    add(
      'event-loop-delay',
      true,
      `An event loop of the client was late by ${delay.toFixed(0)} ms (p99 of a second), and so were the times it took.`,
    );
  }
  const late = checked.queueing.quantile(0.99);
  if (checked.mostWaiting > 0) {
    add(
      'slots',
      true,
      `Up to ${checked.mostWaiting} requests waited in the client for a connection: raise the most in flight.`,
    );
  } else if (!checked.isClosedLoop && late > lateMs) {
    add('late-issues', true, `Requests were sent ${late.toFixed(1)} ms behind their schedule at p99.`);
  }
  if (checked.offeredRate !== null && checked.issuedRate < achieved * checked.offeredRate) {
    add(
      'offered-not-achieved',
      true,
      `Offered were ${checked.offeredRate.toFixed(2)} requests/s, sent ${checked.issuedRate.toFixed(2)}.`,
    );
  }
  if (checked.clientLimits > 0) {
    add(
      'client-limit',
      true,
      `${checked.clientLimits} requests failed on limits of this machine (open files, ports).`,
    );
  }
  if (
    checked.seconds >= CHECK_LIMITS.seconds &&
    checked.coordinator.eventLoopUtilization.mean > utilization
  ) {
    add('event-loop-busy', true, 'The process that deals out the requests was busy all the time.');
  }
  return findings;
}
