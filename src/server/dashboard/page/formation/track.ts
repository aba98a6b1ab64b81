/** State of a request for a time. `between`: its context waits for its next chunk. */
export type SegmentKind = 'queued' | 'context' | 'between' | 'generating' | 'paused' | 'resuming';

export interface Segment {
  kind: SegmentKind;
  beginMs: number;
  /** End of the state; Infinity: it lasts. */
  endMs: number;
  /** Number of tokens of a chunk; 0 for any other state. */
  tokens: number;
}

/** An event of a request: told (chunks and pauses) or, where that was missed, seen later. */
export interface Mark {
  kind: 'chunk' | 'lastChunk' | 'pause' | 'seenQueued' | 'seenContext' | 'seenGenerating' | 'seenPaused';
  beginMs: number;
  endMs: number;
  tokens: number;
}

/** Latest numbers of a request. */
export interface TrackNumbers {
  promptTokens: number;
  contextTokens: number;
  contextDone: number;
  generated: number;
  maxNewTokens: number;
  blocks: number;
  cachedTokens: number;
  pauses: number;
  /** Milliseconds to the first token; -1: not known, or not yet. */
  firstTokenMs: number;
}

export interface TrackEnd {
  ms: number;
  /** Why the request ended; 'gone': its end was missed. */
  reason: string;
}

/** A request on the timeline. Times are the server's, in milliseconds since 1970. */
export class Track {
  readonly id: number;
  readonly label: string;
  /** Name of its LoRA adapter; null: it has none. */
  adapter: string | null = null;
  /** Time of arrival. */
  beginMs: number;
  /** Row of the timeline; -1: none was left. */
  lane = -1;
  /** Time when the track got its row; meaningless before that. */
  shownFromMs = 0;
  /** State by formation events: 0 queued, 1 context, 2 generation, 3 paused. */
  state = 0;
  /** Row of the request in the latest formation, by which blocks name their owner; -1: none. */
  row = -1;
  numbers: TrackNumbers = {
    promptTokens: 0,
    contextTokens: 0,
    contextDone: 0,
    generated: 0,
    maxNewTokens: 0,
    blocks: 0,
    cachedTokens: 0,
    pauses: 0,
    firstTokenMs: -1,
  };
  #end: TrackEnd | null = null;
  #marks: Mark[] = [];
  #segments: Segment[] | null = null;

  constructor(id: number, label: string, beginMs: number) {
    this.id = id;
    this.label = label;
    this.beginMs = beginMs;
  }

  /** True once a formation has listed the request; before that only events told of it. */
  wasListed = false;

  /** End of the latest known event. */
  get lastMarkMs(): number {
    return this.#marks.at(-1)?.endMs ?? this.beginMs;
  }

  get end(): TrackEnd | null {
    return this.#end;
  }

  set end(end: TrackEnd | null) {
    this.#end = end;
    this.#segments = null;
  }

  /** States one behind the other, from arrival to the end, or to Infinity. */
  get segments(): readonly Segment[] {
    this.#segments ??= segmentsOf(this.beginMs, this.#marks, this.#end);
    return this.#segments;
  }

  /** State that the request is in, or was in last. */
  get doing(): SegmentKind {
    return this.segments.at(-1)?.kind ?? 'queued';
  }

  /** Adds an event. Returns false where it was known. */
  add(mark: Mark): boolean {
    const isKnown = this.#marks.some(
      ({ kind, beginMs }) => kind === mark.kind && Math.abs(beginMs - mark.beginMs) < 0.5,
    );
    if (isKnown) return false;
    this.#marks.push(mark);
    this.#marks.sort((left, right) => left.beginMs - right.beginMs);
    this.beginMs = Math.min(this.beginMs, mark.beginMs);
    this.#segments = null;
    return true;
  }

  /** Notes a state seen at a time, adding the events that were missed. */
  see(state: number, ms: number, since: { scheduledMs: number; firstTokenMs: number }): void {
    this.state = state;
    const { doing } = this;
    const lately = this.#segments!.at(-1)?.beginMs ?? this.beginMs;
    const isFirst = !this.#marks.some(({ kind }) => kind === 'pause' || kind === 'seenPaused');
    const at = (told: number) => (told >= 0 && isFirst ? Math.max(lately, this.beginMs + told) : ms);
    const seen = (kind: Mark['kind'], beginMs: number) => {
      this.add({ kind, beginMs, endMs: beginMs, tokens: 0 });
      // It cannot be earlier than the events told meanwhile.
      if (this.doing === doing) this.add({ kind, beginMs: ms, endMs: ms, tokens: 0 });
    };
    if (state === 1 && (doing === 'queued' || doing === 'generating' || doing === 'paused')) {
      seen('seenContext', doing === 'queued' ? at(since.scheduledMs) : ms);
    } else if (state === 2 && doing !== 'generating') seen('seenGenerating', at(since.firstTokenMs));
    else if (state === 3 && doing !== 'paused') seen('seenPaused', ms);
    else if (state === 0 && doing !== 'queued') seen('seenQueued', ms);
  }

  /** Drops events so old that no picture shows them. */
  forgetBefore(ms: number): void {
    if (this.#marks.length < 64 || this.#marks[0]!.endMs >= ms) return;
    const first = this.#marks.findIndex(({ endMs }) => endMs >= ms);
    // The event before the first one kept gives the state until then.
    const kept = Math.max(0, (first < 0 ? this.#marks.length : first) - 1);
    if (kept === 0) return;
    this.#marks = this.#marks.slice(kept);
    this.beginMs = this.#marks[0]!.beginMs;
    this.#segments = null;
  }
}

/** States of a request: queued, then chunks with waits between them, then generating, and so on after every pause. */
function segmentsOf(beginMs: number, marks: readonly Mark[], end: TrackEnd | null): Segment[] {
  const segments: Segment[] = [];
  const endMs = end?.ms ?? Number.POSITIVE_INFINITY;
  let kind: SegmentKind = 'queued';
  let fromMs = beginMs;
  let wasPaused = false;
  /** Latest end of a told event: a state seen before it is part of that event. */
  let toldMs = Number.NEGATIVE_INFINITY;
  const put = (of: SegmentKind, begin: number, until: number, tokens: number) => {
    const from = Math.min(Math.max(begin, fromMs), endMs);
    const to = Math.min(Math.max(until, from), endMs);
    if (to > from) segments.push({ kind: of, beginMs: from, endMs: to, tokens });
    fromMs = Math.max(fromMs, to);
  };
  for (const mark of marks) {
    const isTold = mark.kind === 'chunk' || mark.kind === 'lastChunk' || mark.kind === 'pause';
    if (!isTold && mark.beginMs < toldMs) continue;
    if (isTold) toldMs = Math.max(toldMs, mark.endMs);
    if (mark.beginMs > fromMs) put(kind, fromMs, mark.beginMs, 0);
    if (mark.kind === 'chunk' || mark.kind === 'lastChunk') {
      put(wasPaused ? 'resuming' : 'context', mark.beginMs, mark.endMs, mark.tokens);
      kind = mark.kind === 'lastChunk' ? 'generating' : 'between';
    } else if (mark.kind === 'seenContext') kind = wasPaused ? 'resuming' : 'context';
    else if (mark.kind === 'seenGenerating') kind = 'generating';
    else if (mark.kind === 'seenQueued') kind = 'queued';
    else kind = 'paused';
    wasPaused ||= kind === 'paused';
  }
  put(kind, fromMs, endMs, 0);
  if (segments.length === 0) segments.push({ kind, beginMs, endMs: Math.max(beginMs, endMs), tokens: 0 });
  return segments;
}
