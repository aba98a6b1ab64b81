/** A request of a recording; times in milliseconds from its start. */
export interface RecordedRequest {
  arrivalMs: number;
  promptTokens: number;
  newTokens: number;
  /** [begin, end] of each chunk of its context. */
  chunks: [number, number][];
  firstTokenMs: number;
  lastTokenMs: number;
  /** When its final response left: with V1 that of its whole batch. */
  endMs: number;
}

/** The same requests under one batching scheme. */
export interface SchemeRecording {
  modelType: 'V1' | 'InflightBatching' | 'InflightFusedBatching';
  requests: RecordedRequest[];
  /** Share of the computed rows of generation that ran for nobody; 0 to 1. */
  emptyShare: number;
}

/** Real runs of the three schemes, and on what. Written by tools/scheme-recordings. */
export interface Recordings {
  machine: string;
  instructionSet: string;
  threads: number;
  model: string;
  weights: string;
  maxNumSequences: number;
  schemes: SchemeRecording[];
}

export interface RecordingTotals {
  /** Time until the last final response. */
  wallMs: number;
  tokensPerSecond: number;
  meanFirstTokenMs: number;
  /** Mean time from arrival to the final response. */
  meanLatencyMs: number;
  emptyShare: number;
}

export function totalsOf({ requests, emptyShare }: SchemeRecording): RecordingTotals {
  const mean = (of: (request: RecordedRequest) => number) =>
    requests.reduce((sum, request) => sum + of(request), 0) / requests.length;
  const wallMs = Math.max(...requests.map(({ endMs }) => endMs));
  const tokens = requests.reduce((sum, { newTokens }) => sum + newTokens, 0);
  return {
    wallMs,
    tokensPerSecond: (1000 * tokens) / wallMs,
    meanFirstTokenMs: mean(({ firstTokenMs, arrivalMs }) => firstTokenMs - arrivalMs),
    meanLatencyMs: mean(({ endMs, arrivalMs }) => endMs - arrivalMs),
    emptyShare,
  };
}

/** What a request does for a time; `empty`: it has all its tokens, and its slot runs on until its batch ends. */
export interface RecordedSegment {
  kind: 'queued' | 'context' | 'between' | 'generating' | 'empty';
  beginMs: number;
  endMs: number;
}

/** One behind the other, from its arrival to its final response. */
export function segmentsOf({ arrivalMs, chunks, lastTokenMs, endMs }: RecordedRequest): RecordedSegment[] {
  const segments: RecordedSegment[] = [];
  let fromMs = arrivalMs;
  const put = (kind: RecordedSegment['kind'], until: number) => {
    if (until > fromMs) segments.push({ kind, beginMs: fromMs, endMs: until });
    fromMs = Math.max(fromMs, until);
  };
  for (const [index, [begin, end]] of chunks.entries()) {
    put(index === 0 ? 'queued' : 'between', begin);
    put('context', end);
  }
  put('generating', lastTokenMs);
  put('empty', endMs);
  return segments;
}

/** Tokens that were there at a time: those of a request come evenly from its first to its last. */
export function tokensAt({ requests }: SchemeRecording, ms: number): number {
  let tokens = 0;
  for (const { firstTokenMs, lastTokenMs, newTokens } of requests) {
    if (ms < firstTokenMs) continue;
    const share = lastTokenMs === firstTokenMs ? 1 : (ms - firstTokenMs) / (lastTokenMs - firstTokenMs);
    tokens += 1 + Math.floor((newTokens - 1) * Math.min(1, share));
  }
  return tokens;
}
