/** What a request does for a time. `between`: its context waits for its next chunk. */
export type SegmentKind = 'queued' | 'context' | 'between' | 'generating' | 'paused' | 'resuming';

export interface Segment {
  kind: SegmentKind;
  beginMs: number;
  /** Infinity: it still does. */
  endMs: number;
  /** Tokens of a chunk; 0 for anything else. */
  tokens: number;
}

/** What happened to a request, as told (chunks and pauses) or, where that was missed, as seen later. */
export interface Mark {
  kind: 'chunk' | 'lastChunk' | 'pause' | 'seenQueued' | 'seenContext' | 'seenGenerating' | 'seenPaused';
  beginMs: number;
  endMs: number;
  tokens: number;
}

/** The numbers of a request, as last told. */
export interface TrackNumbers {
  promptTokens: number;
  contextTokens: number;
  contextDone: number;
  generated: number;
  maxNewTokens: number;
  blocks: number;
  cachedTokens: number;
  pauses: number;
  /** -1: not known, or not yet. */
  firstTokenMs: number;
}

export interface TrackEnd {
  ms: number;
  /** 'gone': it is no longer there, and how it ended was missed. */
  reason: string;
}

/** A request on the timeline. Times are the server's, in milliseconds since 1970. */
export class Track {
  readonly id: number;
  readonly label: string;
  /** When it came. */
  beginMs: number;
  /** Row of the timeline; -1: there was none left. */
  lane = -1;
  /** When the track got its row; meaningless before it has one. */
  shownFromMs = 0;
  /** 0 queued, 1 context, 2 generation, 3 paused. */
  state = 0;
  /** The request's row of the latest formation, by which blocks name their owner; -1: it is not in it. */
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

  /** It was listed in a formation, and not only told of. */
  wasListed = false;

  /** The end of what is known to have happened. */
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

  /** One behind the other from when it came to its end, or to Infinity. */
  get segments(): readonly Segment[] {
    this.#segments ??= segmentsOf(this.beginMs, this.#marks, this.#end);
    return this.#segments;
  }

  /** What it does, or did last. */
  get doing(): SegmentKind {
    return this.segments.at(-1)?.kind ?? 'queued';
  }

  /** False where it was known. */
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

  /** It was seen in this state at that time; marks that were missed are put in their place. */
  see(state: number, ms: number, since: { scheduledMs: number; firstTokenMs: number }): void {
    this.state = state;
    const { doing } = this;
    const lately = this.#segments!.at(-1)?.beginMs ?? this.beginMs;
    const isFirst = !this.#marks.some(({ kind }) => kind === 'pause' || kind === 'seenPaused');
    const at = (told: number) => (told >= 0 && isFirst ? Math.max(lately, this.beginMs + told) : ms);
    const seen = (kind: Mark['kind'], beginMs: number) => {
      this.add({ kind, beginMs, endMs: beginMs, tokens: 0 });
      // It is no earlier than what was told meanwhile.
      if (this.doing === doing) this.add({ kind, beginMs: ms, endMs: ms, tokens: 0 });
    };
    if (state === 1 && (doing === 'queued' || doing === 'generating' || doing === 'paused')) {
      seen('seenContext', doing === 'queued' ? at(since.scheduledMs) : ms);
    } else if (state === 2 && doing !== 'generating') seen('seenGenerating', at(since.firstTokenMs));
    else if (state === 3 && doing !== 'paused') seen('seenPaused', ms);
    else if (state === 0 && doing !== 'queued') seen('seenQueued', ms);
  }

  /** Marks of long ago are of no picture any more. */
  forgetBefore(ms: number): void {
    if (this.#marks.length < 64 || this.#marks[0]!.endMs >= ms) return;
    const first = this.#marks.findIndex(({ endMs }) => endMs >= ms);
    // The one before the first that stays says what it did until then.
    const kept = Math.max(0, (first < 0 ? this.#marks.length : first) - 1);
    if (kept === 0) return;
    this.#marks = this.#marks.slice(kept);
    this.beginMs = this.#marks[0]!.beginMs;
    this.#segments = null;
  }
}

/** queued, then chunks with what is between them, then generating, and so on behind every pause. */
function segmentsOf(beginMs: number, marks: readonly Mark[], end: TrackEnd | null): Segment[] {
  const segments: Segment[] = [];
  const endMs = end?.ms ?? Number.POSITIVE_INFINITY;
  let kind: SegmentKind = 'queued';
  let fromMs = beginMs;
  let wasPaused = false;
  /** What was seen in the midst of a chunk was that chunk. */
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
