import { constants } from 'node:os';
import { DEFAULT_MAX_NUM_SEQUENCES } from '../../callbacks/options/optional-params.js';
import { checkDistinctFiles, nothingAnswered, readAnswered } from '../batch/batch-files.js';
import { LineFile } from '../batch/line-file.js';
import { type BatchPlan, planBatch } from '../batch/plan-batch.js';
import { type BatchCounts, runBatch } from '../batch/run-batch.js';
import { Slots } from '../batch/slots.js';
import { UsageError } from '../errors/user-errors.js';
import { ApiKeys } from '../server/web/access/api-keys.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config } from '../settings/config.js';
import { showBatchProgress } from './batch-progress.js';
import { loadConfigured } from './load-configured.js';
import { serveModels } from './open-server.js';

export interface BatchFlags {
  errorFile?: string | undefined;
  concurrency?: string | undefined;
  restart?: boolean | undefined;
  json?: boolean | undefined;
}

/** Exit code for a completed batch in which some requests have no answer. */
const EXIT_SOME_FAILED = 3;
/** Base of the exit code of a process ended by a signal, to which the signal's number is added. */
const EXIT_SIGNAL = 128;
/** Milliseconds that the engine may take to end. */
const ENGINE_END_MS = 1_500;

interface Files {
  input: string;
  output: string;
  errors: string;
}

/**
 * skein batch IN.jsonl OUT.jsonl: answers the requests of a file, in this process, without a socket.
 * @returns the exit code. @throws UsageError, BatchFileError, CheckpointError, EngineError, AddonError.
 */
export async function batch(
  input: string,
  output: string,
  flags: BatchFlags,
  config: Config,
): Promise<number> {
  const files = { input, output, errors: flags.errorFile ?? errorFileOf(output) };
  const concurrency = concurrencyOf(flags.concurrency, config);
  checkDistinctFiles({ 'the input': input, 'the output': output, 'the error file': files.errors });
  const plan = await planOf(files, flags.restart ?? false, config.maxBodyBytes);
  const started = performance.now();
  let interruption: NodeJS.Signals | null = null;
  const abort = new AbortController();
  const interrupt = (signal: NodeJS.Signals) => {
    interruption = signal;
    abort.abort(new Error('Interrupted.'));
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  let counts: BatchCounts;
  try {
    counts = await run(files, plan, concurrency, config, abort);
  } catch (error) {
    if (interruption === null) throw error;
    process.stderr.write('skein: interrupted; the same command goes on with what has no answer yet\n');
    return EXIT_SIGNAL + constants.signals[interruption];
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(flags.json ? summaryJson(files, counts, seconds) : summary(files, counts, seconds));
  return counts.failed === 0 ? 0 : EXIT_SOME_FAILED;
}

async function planOf(files: Files, restart: boolean, maxLineBytes: number): Promise<BatchPlan> {
  const answered = restart ? nothingAnswered() : await readAnswered(files.output);
  // Failed requests are asked again, into a new file of errors; a file with other content is not touched.
  if (!restart) await readAnswered(files.errors);
  return planBatch(files, answered, { maxLineBytes });
}

/** Runs the batch, loading the models only where requests are left. */
async function run(
  files: Files,
  plan: BatchPlan,
  concurrency: number,
  config: Config,
  abort: AbortController,
): Promise<BatchCounts> {
  const output = await LineFile.open(files.output, plan.answered.bytes);
  const errors = await LineFile.open(files.errors, 0);
  const progress = showBatchProgress(process.stderr, plan);
  let loaded: RunningModel[] = [];
  try {
    const answer = async () => {
      loaded = await loadConfigured(config, abort.signal);
      return served(config, loaded, abort);
    };
    return await runBatch({
      input: files.input,
      output,
      errors,
      answered: plan.answered,
      answer: plan.left === 0 ? refuseAll : await answer(),
      slots: new Slots(concurrency),
      rules: { maxLineBytes: config.maxBodyBytes },
      signal: abort.signal,
      onProgress: progress.show,
    });
  } finally {
    progress.end();
    await output.close();
    await errors.close({ unlinkEmpty: true });
    await Promise.all(loaded.map((model) => model.close({ abort: true, terminateAfterMs: ENGINE_END_MS })));
  }
}

function refuseAll(): never {
  throw new Error('Nothing is left to ask.');
}

/**
 * Answers with the server's own app, so that a line may ask what a client may. The batch ends where no engine is left that has not
 * failed for good.
 */
function served(config: Config, loaded: readonly RunningModel[], abort: AbortController) {
  const running = config.models.map((entry, index) => ({ entry, loaded: loaded[index]! }));
  const { app, failed } = serveModels(running, config, { apiKeys: new ApiKeys([]), corsOrigins: [] });
  void failed.then((failure) => abort.abort(failure));
  return (request: Request) => app.fetch(request);
}

/** Path of the file of errors: out.errors.jsonl for out.jsonl. */
function errorFileOf(output: string): string {
  return `${output.replace(/\.jsonl$/i, '')}.errors.jsonl`;
}

/** Requests at once: twice as many as run, so that there is always a next one; but no more than may run and wait. */
function concurrencyOf(
  flag: string | undefined,
  { maxActiveRequests = DEFAULT_MAX_NUM_SEQUENCES, maxQueuedRequests }: Config,
): number {
  const most = maxActiveRequests + maxQueuedRequests;
  if (flag === undefined) return Math.min(2 * maxActiveRequests, most);
  const value = Number(flag);
  if (/^\d+$/.test(flag) && value >= 1 && value <= most) return value;
  throw new UsageError(
    `--concurrency is ${JSON.stringify(flag)}; it must be a whole number from 1 to ${most}, what runs and waits (--max-active-requests and --max-queued-requests).`,
  );
}

function summary({ output, errors }: Files, counts: BatchCounts, seconds: number): string {
  const { completed, failed, skipped, usage } = counts;
  const before = skipped === 0 ? '' : `, ${skipped} answered before`;
  const bad = failed === 0 ? '' : `, ${failed} failed (${errors})`;
  const rate =
    completed === 0
      ? ''
      : `; ${usage.completionTokens} tokens in ${seconds.toFixed(1)} s, ${perSecond(usage.completionTokens, seconds)} tokens/s`;
  return `${output}: ${completed} answered${before}${bad}${rate}\n`;
}

function summaryJson({ output, errors }: Files, { usage, ...counts }: BatchCounts, seconds: number): string {
  const { promptTokens, completionTokens } = usage;
  return `${JSON.stringify({
    output,
    errors: counts.failed === 0 ? null : errors,
    ...counts,
    promptTokens,
    completionTokens,
    seconds: Math.round(seconds * 1000) / 1000,
    tokensPerSecond: perSecond(completionTokens, seconds),
  })}\n`;
}

function perSecond(tokens: number, seconds: number): number {
  return Math.round(tokens / seconds);
}
