import {
  type EngineFormation,
  type Formation,
  type FormationEnd,
  type FormationRow,
  type FormationStep,
  MAX_ENDED,
  MAX_QUEUED_ROWS,
} from '../callbacks/formation.js';

/** What of a request in the host is told. */
interface Followed {
  request: { requestId: bigint };
  label: string;
  /** On performance.now's clock. */
  submittedMs: number;
  /** Tokens of its prompt, and those that it may generate at most. */
  promptLength: number;
  maxNewTokens: number;
  pieces: { readonly generatedTokens: number; readonly cachedTokens: number };
}

const COUNTS = 10;
const NUMBERS_PER_STEP = 6;
const QUEUED = 0;

/** Puts what the engine tells of its requests together with what the host knows of them, and of those that wait. */
export class FormationWriter {
  readonly #engine: { numBlocks: number; tokensPerBlock: number };
  /** Their times on performance.now's clock. */
  #ended: FormationEnd[] = [];
  #isFirst = true;

  /** `engine` may be filled in later, before the first formation. */
  constructor(engine: { numBlocks: number; tokensPerBlock: number }) {
    this.#engine = engine;
  }

  /** A request has ended. Of too many the oldest are forgotten. */
  noteEnd({ request, label, submittedMs, promptLength, pieces }: Followed, reason: string): void {
    const nowMs = performance.now();
    const { generatedTokens, cachedTokens } = pieces;
    const lengths = [promptLength, generatedTokens, cachedTokens] as const;
    this.#ended.push([
      Number(request.requestId),
      label,
      reason,
      nowMs,
      Math.round(nowMs - submittedMs),
      ...lengths,
    ]);
    if (this.#ended.length > MAX_ENDED) this.#ended.shift();
  }

  write(
    engine: EngineFormation,
    entries: ReadonlyMap<bigint, Followed>,
    queue: { readonly size: number; list(max: number): readonly Followed[] },
  ): Formation {
    const nowMs = performance.now();
    const ageOf = (entry: Followed | undefined) => (entry ? Math.round(nowMs - entry.submittedMs) : 0);
    const running = Array.from(engine.requestIds, (requestId, row): FormationRow => {
      const entry = entries.get(requestId);
      const counts = engine.counts.subarray(row * COUNTS, (row + 1) * COUNTS);
      return [Number(requestId), entry?.label ?? '', engine.states[row]!, ageOf(entry), ...counts];
    });
    const waiting = queue.list(MAX_QUEUED_ROWS).map((entry): FormationRow => {
      const { request, label, promptLength, maxNewTokens } = entry;
      const lengths = [promptLength, promptLength, 0, 0, maxNewTokens, 0, 0, 0, -1, -1];
      return [Number(request.requestId), label, QUEUED, ageOf(entry), ...lengths];
    });
    const ended = this.#ended.map((end): FormationEnd => end.with(3, tenths(end[3] - nowMs)) as FormationEnd);
    this.#ended = [];
    const { totals, longestIterationMs, latency } = engine.record;
    const steps = stepsOf(engine.record.steps, performance.timeOrigin + nowMs);
    // Who begins to watch has not heard the end of others.
    const ids = this.#isFirst ? new Set(running.map(([id]) => id)) : null;
    this.#isFirst = false;
    const { numBlocks: count, tokensPerBlock } = this.#engine;
    return {
      v: 1,
      timeMs: Date.now(),
      iteration: engine.iteration,
      requests: [...running, ...waiting],
      queued: queue.size,
      ended,
      steps: ids === null ? steps : steps.filter(([id]) => ids.has(id)),
      totals: { ...totals, iterationMs: tenths(totals.iterationMs), executorMs: tenths(totals.executorMs) },
      longestIterationMs: tenths(longestIterationMs),
      latency,
      blocks: { count, tokensPerBlock, runs: Array.from(engine.blockRuns) },
    };
  }
}

function stepsOf(steps: Float64Array, nowMs: number): FormationStep[] {
  return Array.from({ length: steps.length / NUMBERS_PER_STEP }, (_, index) => {
    const first = index * NUMBERS_PER_STEP;
    const [id, kind, beginMs, endMs, from, tokens] = steps.subarray(first, first + NUMBERS_PER_STEP);
    return [id!, kind!, tenths(beginMs! - nowMs), tenths(endMs! - nowMs), from!, tokens!];
  });
}

/** Milliseconds to a tenth: what a picture can show. */
function tenths(ms: number): number {
  return Math.round(10 * ms) / 10;
}
