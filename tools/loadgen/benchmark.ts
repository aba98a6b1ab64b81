import { arch, platform, release } from 'node:os';
import { skeinVersion } from '../../engine/package-info.js';
import { describeMachine } from '../compare/machine.js';
import type { ArrivalOptions } from './arrivals/arrivals.js';
import type { BackendOptions } from './backends/backend.js';
import { createBackend } from './backends/index.js';
import { LoadRun, type Progress } from './coordinator/load-run.js';
import { calibrate, firstModel, probe, type Target } from './coordinator/target.js';
import { startWorkers } from './coordinator/workers.js';
import { createData, type Data, needsScale } from './data/create-data.js';
import { PLAIN_SCALE, type TokenScale } from './data/words.js';
import { summarizeHealth } from './metrics/checks.js';
import { sloOf } from './metrics/slo.js';
import {
  type BenchOptions,
  DEFAULT_REQUESTS,
  type FullBenchOptions,
  parseOptions,
  serverUrl,
} from './options.js';
import { runReport } from './report/run-report.js';
import { type BenchReport, REPORT_SCHEMA, type RunReport } from './report/schema.js';
import type { ClientHealth } from './worker/frames.js';
import { HealthProbe } from './worker/health.js';
import type { WorkerProcess } from './worker/worker-process.js';

export interface BenchHooks {
  /** Cuts the benchmark off: what there is is reported, marked incomplete. */
  signal?: AbortSignal;
  /** Called some times a second while a run goes on. */
  onProgress?: (progress: Progress, label: string) => void;
  /** Called when a run is over. */
  onRun?: (run: RunReport) => void;
  /** One line about what is going on before and between runs. */
  onNote?: (note: string) => void;
}

const PROGRESS_MS = 250;
const HEALTH_MS = 1000;

/**
 * Loads a server as the options say and reports what it saw.
 * @throws InputError for options that do not go together or files that cannot be read, TargetError where the server does
 * not answer or refuses a first request.
 */
export async function runBenchmark(options: BenchOptions, hooks: BenchHooks = {}): Promise<BenchReport> {
  const full = parseOptions(options);
  const { target, backend } = await findTarget(full);
  const data = createData(full, await findScale(full, target, backend, hooks));
  const dataset = data.of(full.seed);
  const launchers = Array.from({ length: full.workers ?? 1 }, () => []);
  const workers = await startWorkers(full, target.origin, target.headers, backend, launchers);
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
    data: { ...dataset.description },
    placement: { isOn: false, message: '', coordinator: null, workers: workers.map(() => null) },
    warmup: { requests: 0, completed: 0 },
    runs: [],
    sweep: null,
  };
  try {
    await new Benchmark(full, data, workers, report, hooks).run();
    return report;
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
  }
}

async function findTarget(
  options: FullBenchOptions,
): Promise<{ target: Target; backend: BackendOptions & { path: string } }> {
  const { origin, prefix } = serverUrl(options.url);
  const authorization = options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` };
  const target = { origin, prefix, headers: { ...authorization, ...options.headers } };
  const backend: BackendOptions = {
    name: options.backend,
    model: options.model ?? (options.backend === 'raw' ? '' : await firstModel(target)),
    stream: options.stream,
    ignoreEos: options.ignoreEos,
    fields: options.fields,
  };
  return { target, backend: { ...backend, path: options.path ?? prefix + createBackend(backend).path } };
}

/** Asks the server a first request or two: what it refuses is known before the load. */
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

/** As they are, without keys. */
function publicOptions({ apiKey, headers, ...rest }: FullBenchOptions): Record<string, unknown> {
  return { ...rest, apiKey: apiKey === undefined ? null : 'set', headers: Object.keys(headers) };
}

/** The runs of one benchmark, one after the other, over the same worker processes. */
class Benchmark {
  readonly #options: FullBenchOptions;
  readonly #data: Data;
  readonly #workers: readonly WorkerProcess[];
  readonly #report: BenchReport;
  readonly #hooks: BenchHooks;
  readonly #signal: AbortSignal;

  constructor(
    options: FullBenchOptions,
    data: Data,
    workers: readonly WorkerProcess[],
    report: BenchReport,
    hooks: BenchHooks,
  ) {
    this.#options = options;
    this.#data = data;
    this.#workers = workers;
    this.#report = report;
    this.#hooks = hooks;
    this.#signal = hooks.signal ?? new AbortController().signal;
  }

  async run(): Promise<void> {
    await this.#warmUp();
    const { arrivals, repeat } = this.#options;
    for (let repetition = 0; repetition < repeat && !this.#signal.aborted; repetition++) {
      await this.#measure(arrivals, repetition);
    }
    const { runs } = this.#report;
    this.#report.complete = runs.length === repeat && runs.every(({ complete }) => complete);
  }

  async #warmUp(): Promise<void> {
    const { warmup, seed } = this.#options;
    if (warmup === 0) return;
    const arrivals: ArrivalOptions = { kind: 'concurrency', concurrency: Math.min(warmup, 16) };
    // A seed of its own: the run's prompts are not in the server's cache by it.
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
    const timers = [
      setInterval(() => health.push(probe.read(0)), HEALTH_MS),
      setInterval(() => this.#hooks.onProgress?.(run.progress(), label), PROGRESS_MS),
    ];
    try {
      const result = await run.run();
      health.push(probe.read(0));
      const report = runReport(result, {
        label,
        load: loadOf(arrivals),
        repetition,
        arrivals,
        seed,
        slo: sloOf(this.#options.slo),
        dataset: this.#data.of(seed),
        coordinator: summarizeHealth(health),
        server: null,
      });
      this.#report.runs.push(report);
      this.#hooks.onRun?.(report);
    } finally {
      for (const timer of timers) clearInterval(timer);
      probe.close();
    }
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
