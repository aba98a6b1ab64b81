/** Limits that a request must keep to count as good. */
export interface Slo {
  ttftMs?: number | undefined;
  tpotMs?: number | undefined;
  e2eMs?: number | undefined;
}

/** Limits of MLPerf Inference for time to first token and per output token, which it applies at p99. */
export const SLO_PRESETS = {
  'mlperf-llama3.1-8b-server': { ttftMs: 2000, tpotMs: 100 },
  'mlperf-llama3.1-8b-interactive': { ttftMs: 500, tpotMs: 30 },
  'mlperf-llama2-70b-server': { ttftMs: 2000, tpotMs: 200 },
  'mlperf-llama2-70b-interactive': { ttftMs: 450, tpotMs: 40 },
} as const satisfies Record<string, Slo>;

export type SloPreset = keyof typeof SLO_PRESETS;

export function sloOf(option: SloPreset | Slo | null): Slo | null {
  return typeof option === 'string' ? SLO_PRESETS[option] : option;
}

/** Times of a request that are judged; NaN where it has none. */
export interface Judged {
  ttftMs: number;
  tpotMs: number;
  e2eMs: number;
}

/** True within all limits. A missing time (no second token) exceeds none. */
export function isGood(times: Judged, slo: Slo): boolean {
  const keeps = (ms: number, limit: number | undefined) =>
    limit === undefined || Number.isNaN(ms) || ms <= limit;
  return keeps(times.ttftMs, slo.ttftMs) && keeps(times.tpotMs, slo.tpotMs) && keeps(times.e2eMs, slo.e2eMs);
}
