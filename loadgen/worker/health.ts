import {
  type IntervalHistogram,
  monitorEventLoopDelay,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks';
import type { ClientHealth } from './frames.js';

/** Milliseconds of the timer that samples the delay, which the delay contains. */
const RESOLUTION_MS = 10;

/** Measures this process's health: its event loop, garbage collection and processor time, from one call to the next. */
export class HealthProbe {
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #observer: PerformanceObserver;
  #gcMs = 0;
  #elu = performance.eventLoopUtilization();
  #cpu = process.cpuUsage();
  #atMs = performance.now();

  constructor() {
    this.#delay.enable();
    this.#observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) this.#gcMs += duration;
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Health since the last call. */
  read(opened: number): ClientHealth {
    const now = performance.now();
    const elu = performance.eventLoopUtilization();
    const cpu = process.cpuUsage();
    const ms = now - this.#atMs;
    const late = (ns: number) => Math.max(0, ns / 1e6 - RESOLUTION_MS);
    const health = {
      eventLoopUtilization: performance.eventLoopUtilization(elu, this.#elu).utilization,
      loopDelayP99Ms: this.#delay.count === 0 ? 0 : late(this.#delay.percentile(99)),
      loopDelayMaxMs: this.#delay.count === 0 ? 0 : late(this.#delay.max),
      gcMs: this.#gcMs,
      cpu: (cpu.user + cpu.system - this.#cpu.user - this.#cpu.system) / 1000 / ms,
      opened,
      seconds: ms / 1000,
    };
    this.#delay.reset();
    this.#gcMs = 0;
    this.#elu = elu;
    this.#cpu = cpu;
    this.#atMs = now;
    return health;
  }

  close(): void {
    this.#delay.disable();
    this.#observer.disconnect();
  }
}
