import { type BatchUsage, NO_USAGE } from '../../batch/batch-usage.js';

export const BATCH_STATUSES = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchStatus = (typeof BATCH_STATUSES)[number];

const ENDED: ReadonlySet<BatchStatus> = new Set(['failed', 'completed', 'expired', 'cancelled']);

/** What is wrong with a batch as a whole, or with a line of its input. */
export interface BatchFault {
  code: string;
  message: string;
  line: number | null;
  param: string | null;
}

/** A batch, as it is kept. Times are in seconds since 1970. */
export interface Batch {
  id: string;
  /** Name of the API key that it belongs to. */
  owner: string;
  endpoint: string;
  inputFileId: string;
  completionWindow: string;
  metadata: Readonly<Record<string, string>> | null;
  /** Seconds that its answers are kept; null: as long as any file. */
  outputLifeSeconds: number | null;
  /** Ids of the files that its answers go to, which clients find when it has ended. */
  outputId: string;
  errorsId: string;
  status: BatchStatus;
  createdAt: number;
  expiresAt: number;
  /** When it came to states, by OpenAI's names of the times. */
  times: Partial<Record<BatchTime, number>>;
  faults: readonly BatchFault[];
  counts: BatchProgress;
  /** Which of both files there are. */
  hasOutput: boolean;
  hasErrors: boolean;
  /** Id of the server that runs it, of several that share their batches; absent: it is the only one. */
  holder?: string | undefined;
}

export const BATCH_TIMES = [
  'in_progress_at',
  'finalizing_at',
  'completed_at',
  'failed_at',
  'expired_at',
  'cancelling_at',
  'cancelled_at',
] as const;
export type BatchTime = (typeof BATCH_TIMES)[number];

/** How far a batch is. */
export interface BatchProgress {
  total: number;
  completed: number;
  failed: number;
  usage: BatchUsage;
}

export const NO_PROGRESS: Readonly<BatchProgress> = { total: 0, completed: 0, failed: 0, usage: NO_USAGE };

export function hasEnded({ status }: Pick<Batch, 'status'>): boolean {
  return ENDED.has(status);
}

/** The batch in a further state, now. */
export function inState(batch: Batch, status: Exclude<BatchStatus, 'validating'>, now: number): Batch {
  return { ...batch, status, times: { ...batch.times, [`${status}_at`]: now } };
}

/** The batch as clients see it. */
export function batchJson(batch: Batch) {
  const { faults, counts, times } = batch;
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = counts.usage;
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: faults.length === 0 ? null : { object: 'list', data: faults },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status: batch.status,
    output_file_id: batch.hasOutput ? batch.outputId : null,
    error_file_id: batch.hasErrors ? batch.errorsId : null,
    created_at: batch.createdAt,
    expires_at: batch.expiresAt,
    ...Object.fromEntries(BATCH_TIMES.map((name) => [name, times[name] ?? null])),
    request_counts: { total: counts.total, completed: counts.completed, failed: counts.failed },
    usage: {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: cachedTokens },
      output_tokens: completionTokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: promptTokens + completionTokens,
    },
    metadata: batch.metadata,
  };
}

const WINDOW = /^([1-9]\d{0,3})([mhd])$/;
const UNIT_S: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 };
const MAX_WINDOW_S = 14 * 86_400;

/** Seconds of a completion window such as 24h; null where it is none, or longer than 14 days. */
export function windowSeconds(text: string): number | null {
  const [, count, unit] = WINDOW.exec(text) ?? [];
  if (count === undefined || unit === undefined) return null;
  const seconds = Number(count) * UNIT_S[unit]!;
  return seconds <= MAX_WINDOW_S ? seconds : null;
}
