import { arch, platform, release } from 'node:os';
import { onlyTold } from '../base/error-reporter.js';
import { describeMachine } from '../base/machine.js';
import { skeinVersion } from '../base/package-info.js';
import { readTopology } from '../base/topology.js';
import type { ArrivalOptions } from './arrivals/arrivals.js';
import type { BackendOptions } from './backends/backend.js';
import { createBackend } from './backends/index.js';
import { LoadRun, type Progress, type RunResult } from './coordinator/load-run.js';
import { Scraper } from './coordinator/scraper.js';
import { calibrate, firstModel, probe, type Target } from './coordinator/target.js';
import { startWorkers } from './coordinator/workers.js';
import { createData, type Data, needsScale } from './data/create-data.js';
import { readDataFile } from './data/jsonl.js';
import { PLAIN_SCALE, type TokenScale } from './data/words.js';
import { summarizeHealth } from './metrics/checks.js';
import { sloOf } from './metrics/slo.js';
import {
  type BenchOptions,
  DEFAULT_REQUESTS,
  type FullBenchOptions,
  isThisMachine,
  parseOptions,
  serverUrl,
} from './options.js';
import { canPin, launcherOf, pinThisProcess, planPlacement } from './placement.js';
import { runReport } from './report/run-report.js';
import { type BenchReport, REPORT_SCHEMA, type RunReport } from './report/schema.js';
import { kneeOf, nextLoad, pointsOf, saturation } from './sweep.js';
import type { ClientHealth } from './worker/frames.js';
import { HealthProbe } from './worker/health.js';
import type { WorkerProcess } from './worker/worker-process.js';

export interface BenchHooks {
  /** Signal whose abort cuts the benchmark off: results so far are reported, marked incomplete. */
  signal?: AbortSignal;
  /** Called several times a second while a run goes on. */
  onProgress?: (progress: Progress, label: string) => void;
  /**
   * Called after each run; the next run waits for the returned promise. An error of this function ends the benchmark.
   */
  onRun?: (run: RunReport, result: RunResult) => void | Promise<void>;
  /** Called with a line about the work before and between runs. */
  onNote?: (note: string) => void;
}

const PROGRESS_MS = 250;
const HEALTH_MS = 1000;

/**
 * Loads a server as the options say and reports the results. The calling process stays on its processors; only worker
 * processes are pinned.
 * @throws InputError for options that exclude each other or files that cannot be read, TargetError where the server
 * does not answer or refuses a first request, and any error of onRun.
 */
export function runBenchmark(options: BenchOptions, hooks: BenchHooks = {}): Promise<BenchReport> {
  return benchmark(options, hooks, false);
}

/**
 * Runs a benchmark as runBenchmark does, in a process without other work: it is put on processors of its own until the
 * benchmark is over.
 */
export function runOwnBenchmark(options: BenchOptions, hooks: BenchHooks = {}): Promise<BenchReport> {
  return benchmark(options, hooks, true);
}

async function benchmark(
  options: BenchOptions,
  given: BenchHooks,
  ownsProcess: boolean,
): Promise<BenchReport> {
  const hooks = guarded(given);
  const full = parseOptions(options);
  const { target, backend } = await findTarget(full);
  const data = createData(full, await findScale(full, target, backend, hooks));
  // Files are read before any process is started.
  const { description } = data.of(full.seed);
  const placement = planPlacement({
    topology: readTopology(),
    workers: full.workers,
    isOn: full.cpuAffinity,
    serverIsHere: isThisMachine(full.url),
    canPin: canPin(),
    ownsProcess,
    most: mostAtOnce(full),
  });
  const unpin = placement.coordinator === null ? null : pinThisProcess(placement.coordinator);
  try {
    const launchers = placement.workers.map(launcherOf);
    const workers = await startWorkers(full, target, backend, launchers);
    const report: BenchReport = {
      schema: REPORT_SCHEMA,
      skein: skeinVersion(),
      startedAt: new Date().toISOString(),
      complete: false,
      target: {
        url: target.origin + backend.path,
        backend: full.backend,
        model: backend.model,
        streamed: full.stream,
      },
      machine: { ...describeMachine(), node: process.version, os: `${platform()} ${release()} ${arch()}` },
      options: publicOptions(full),
      data: { ...description },
      placement: { isOn: placement.workers.some((cpus) => cpus !== null), ...placement },
      warmup: { requests: 0, completed: 0 },
      runs: [],
      sweep: null,
    };
    try {
      await new Benchmark(full, data, target, workers, report, hooks).run();
      return report;
    } finally {
      await Promise.all(workers.map((worker) => worker.close()));
    }
  } finally {
    unpin?.();
  }
}

/** Wraps hooks that only observe: their errors become warnings, and the load continues. */
function guarded({ onProgress, onNote, ...rest }: BenchHooks): BenchHooks {
  return {
    ...rest,
    ...(onProgress && { onProgress: onlyTold('onProgress', onProgress) }),
    ...(onNote && { onNote: onlyTold('onNote', onNote) }),
  };
}

/** Most requests at once: a closed loop has no more than its slots. */
function mostAtOnce({ arrivals, sweep, maxInFlight }: FullBenchOptions): number {
  return sweep === null && arrivals.kind === 'concurrency' ? arrivals.concurrency : maxInFlight;
}

async function findTarget(
  options: FullBenchOptions,
): Promise<{ target: Target; backend: BackendOptions & { path: string } }> {
  const { origin, prefix } = serverUrl(options.url);
  const authorization = options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` };
  const target = { origin, prefix, headers: { ...authorization, ...options.headers }, tls: tlsOf(options) };
  const backend: BackendOptions = {
    name: options.backend,
    model: options.model ?? (options.backend === 'raw' ? '' : await firstModel(target)),
    stream: options.stream,
    ignoreEos: options.ignoreEos,
    fields: options.fields,
  };
  return { target, backend: { ...backend, path: options.path ?? prefix + createBackend(backend).path } };
}

/** TLS options. @throws InputError where the file cannot be read. */
function tlsOf({ ca, insecure }: FullBenchOptions): Target['tls'] {
  return {
    ...(ca === undefined ? {} : { ca: readDataFile(ca) }),
    ...(insecure ? { rejectUnauthorized: false } : {}),
  };
}

/** Sends the server a first request or two, so that refusals are known before the load. */
async function findScale(
  options: FullBenchOptions,
  target: Target,
  backend: BackendOptions,
  hooks: BenchHooks,
): Promise<TokenScale> {
  if (options.backend === 'raw') return PLAIN_SCALE;
  if (!options.calibrate) return PLAIN_SCALE;
  if (!needsScale(options)) {
    await probe(target, createBackend(backend), 'Hello');
    return PLAIN_SCALE;
  }
  const scale = await calibrate(target, createBackend(backend), options.seed);
  if (scale === null) {
    hooks.onNote?.('The server does not count prompt tokens: a word is taken for a token.');
    return PLAIN_SCALE;
  }
  return scale;
}

/** The options without keys. */
function publicOptions({ apiKey, headers, ...rest }: FullBenchOptions): Record<string, unknown> {
  return { ...rest, apiKey: apiKey === undefined ? null : 'set', headers: Object.keys(headers) };
}

/** Runs of one benchmark, one after the other, with the same worker processes. */
class Benchmark {
  readonly #options: FullBenchOptions;
  readonly #data: Data;
  readonly #target: Target;
  readonly #workers: readonly WorkerProcess[];
  readonly #report: BenchReport;
  readonly #hooks: BenchHooks;
  readonly #signal: AbortSignal;

  constructor(
    options: FullBenchOptions,
    data: Data,
    target: Target,
    workers: readonly WorkerProcess[],
    report: BenchReport,
    hooks: BenchHooks,
  ) {
    this.#options = options;
    this.#data = data;
    this.#target = target;
    this.#workers = workers;
    this.#report = report;
    this.#hooks = hooks;
    this.#signal = hooks.signal ?? new AbortController().signal;
  }

  async run(): Promise<void> {
    await this.#warmUp();
    const { sweep, arrivals } = this.#options;
    const isWhole = sweep === null ? await this.#repeat(arrivals) : await this.#sweep(sweep);
    this.#report.complete = isWhole && this.#report.runs.every(({ complete }) => complete);
  }

  /** Runs all repetitions. @returns false where they were cut off. */
  async #repeat(arrivals: ArrivalOptions): Promise<boolean> {
    for (let repetition = 0; repetition < this.#options.repeat; repetition++) {
      if (this.#signal.aborted) return false;
      await this.#measure(arrivals, repetition);
    }
    return true;
  }

  async #sweep(sweep: NonNullable<FullBenchOptions['sweep']>): Promise<boolean> {
    const over = sweep.over === 'auto' ? sweep.of : sweep.over;
    const at = (load: number) => this.#repeat(atLoad(this.#options.arrivals, over, load));
    let isWhole = true;
    if (sweep.over === 'auto') {
      const next = () =>
        nextLoad(pointsOf(this.#report.runs), sweep.from, sweep.refine, over === 'concurrency');
      for (let load = next(); load !== null && isWhole; load = next()) isWhole = await at(load);
    } else {
      for (const load of sweep.points) isWhole &&= await at(load);
    }
    const points = pointsOf(this.#report.runs);
    const knee = kneeOf(points);
    const found = saturation(points);
    this.#report.sweep = {
      over,
      knee:
        knee === null
          ? null
          : {
              load: points[knee]!.load,
              requestsPerSecond: points[knee]!.throughput,
              outputTokensPerSecond: points[knee]!.outputTokens,
            },
      sustained: points[found?.last ?? points.length - 1]?.load ?? null,
      isSaturated: found !== null,
    };
    return isWhole;
  }

  async #warmUp(): Promise<void> {
    const { warmup, seed } = this.#options;
    if (warmup === 0) return;
    const arrivals: ArrivalOptions = { kind: 'concurrency', concurrency: Math.min(warmup, 16) };
    // A seed of its own keeps the run's prompts out of the server's cache.
    const { metrics } = await this.#newRun(arrivals, warmup, Number.POSITIVE_INFINITY, seed - 1).run();
    this.#report.warmup = { requests: metrics.total, completed: metrics.answered };
  }

  async #measure(arrivals: ArrivalOptions, repetition: number): Promise<void> {
    const { requests, duration, repeat } = this.#options;
    const seed = this.#options.seed + repetition;
    const isEndless = requests === null && duration === null && arrivals.kind !== 'trace';
    const count = requests ?? (isEndless ? DEFAULT_REQUESTS : Number.POSITIVE_INFINITY);
    const label = labelOf(arrivals) + (repeat > 1 ? ` #${repetition + 1}` : '');
    const run = this.#newRun(arrivals, count, (duration ?? Number.POSITIVE_INFINITY) * 1000, seed);
    const probe = new HealthProbe();
    const health: ClientHealth[] = [];
    const scraper = this.#options.scrape ? new Scraper(this.#target) : null;
    scraper?.start();
    const timers = [
      setInterval(() => health.push(probe.read(0)), HEALTH_MS),
      setInterval(() => this.#hooks.onProgress?.(run.progress(), label), PROGRESS_MS),
    ];
    let result: RunResult;
    let report: RunReport;
    try {
      result = await run.run();
      health.push(probe.read(0));
      report = runReport(result, {
        label,
        load: loadOf(arrivals),
        repetition,
        arrivals,
        seed,
        slo: sloOf(this.#options.slo),
        dataset: this.#data.of(seed),
        coordinator: summarizeHealth(health),
        server: (await scraper?.stop()) ?? null,
      });
      this.#report.runs.push(report);
    } finally {
      for (const timer of timers) clearInterval(timer);
      await scraper?.stop();
      probe.close();
    }
    await this.#hooks.onRun?.(report, result);
  }

  #newRun(arrivals: ArrivalOptions, requests: number, durationMs: number, seed: number): LoadRun {
    return new LoadRun(this.#workers, {
      arrivals,
      traceTimes: this.#data.traceTimes,
      dataset: this.#data.of(seed),
      seed,
      bounds: { requests, durationMs },
      maxDurationMs: this.#options.maxDuration * 1000,
      slo: sloOf(this.#options.slo),
      signal: this.#signal,
    });
  }
}

/** The arrivals at another load: a closed loop where concurrency is swept, else arrivals of the same kind. */
function atLoad(arrivals: ArrivalOptions, over: 'rate' | 'concurrency', load: number): ArrivalOptions {
  if (over === 'concurrency') return { kind: 'concurrency', concurrency: load };
  if ('rate' in arrivals) return { ...arrivals, rate: load };
  return { kind: 'poisson', rate: load };
}

function labelOf(arrivals: ArrivalOptions): string {
  switch (arrivals.kind) {
    case 'concurrency':
      return `concurrency ${arrivals.concurrency}`;
    case 'max':
      return 'all at once';
    case 'ramp':
      return `ramp ${arrivals.from} to ${arrivals.to} requests/s`;
    case 'trace':
      return `trace at speed ${arrivals.speed}`;
    default:
      return `${arrivals.kind} ${arrivals.rate} requests/s`;
  }
}

function loadOf(arrivals: ArrivalOptions): number | null {
  if (arrivals.kind === 'concurrency') return arrivals.concurrency;
  return 'rate' in arrivals ? arrivals.rate : null;
}
