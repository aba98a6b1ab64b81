import type { RequestRecord } from '../records.js';

const COLUMNS = [
  'run',
  'request',
  'sample',
  'turn',
  'worker',
  'outcome',
  'status',
  'attempts',
  'scheduled_s',
  'sent_s',
  'ttft_ms',
  'tpot_ms',
  'e2e_ms',
  'queueing_ms',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'pieces',
] as const;

export const CSV_HEAD = `${COLUMNS.join(',')}\n`;

/** One line for each request; times count from the start of the run, and missing values are empty. */
export function csvLines(label: string, records: Iterable<RequestRecord>, startMs: number): string {
  let text = '';
  for (const record of records) {
    const { scheduledMs, sentMs, firstMs, lastMs, endMs, pieces, streamed } = record;
    const tokens = Number.isNaN(record.completionTokens) ? pieces : record.completionTokens;
    const values = [
      `"${label.replaceAll('"', '""')}"`,
      record.request,
      record.sample,
      record.turn,
      record.worker,
      record.outcome,
      record.status === 0 ? '' : record.status,
      record.attempts,
      cell((scheduledMs - startMs) / 1000, 6),
      cell((sentMs - startMs) / 1000, 6),
      streamed ? cell(firstMs - sentMs, 3) : '',
      streamed && tokens > 1 ? cell((lastMs - firstMs) / (tokens - 1), 3) : '',
      cell(endMs - sentMs, 3),
      cell(sentMs - scheduledMs, 3),
      cell(record.promptTokens, 0),
      cell(record.completionTokens, 0),
      cell(record.cachedTokens, 0),
      pieces,
    ];
    text += `${values.join(',')}\n`;
  }
  return text;
}

function cell(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '';
}
