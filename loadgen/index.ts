// This is the library: import { runBenchmark } from 'skein/loadgen'.
export type { ArrivalOptions } from './arrivals/arrivals.js';
export { BACKEND_NAMES, type BackendName } from './backends/backend.js';
export { type BenchHooks, runBenchmark } from './benchmark.js';
export type { Progress, RunResult } from './coordinator/load-run.js';
export { type LengthOptions, parseLength } from './data/lengths.js';
export { InputError, TargetError } from './errors.js';
export type { Finding } from './metrics/checks.js';
export { SLO_PRESETS, type Slo, type SloPreset } from './metrics/slo.js';
export { type BenchOptions, isThisMachine } from './options.js';
export { OUTCOMES, type Outcome } from './outcomes.js';
export type { RequestRecord } from './records.js';
export { type Comparison, compareReports, readReport } from './report/compare.js';
export { CSV_HEAD, csvLines } from './report/csv.js';
export { htmlReport, type NamedReport } from './report/html.js';
export { type BenchReport, benchReport, REPORT_SCHEMA, type RunReport } from './report/schema.js';
