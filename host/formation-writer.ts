import {
  type EngineFormation,
  type Formation,
  type FormationAdapter,
  type FormationEnd,
  type FormationRow,
  type FormationStep,
  MAX_ENDED,
  MAX_QUEUED_ROWS,
} from '../callbacks/formation.js';

/** The parts of a request in the host that formations report. */
interface Followed {
  request: { requestId: bigint };
  label: string;
  /** Name of its LoRA adapter; null: it has none. */
  adapterName: string | null;
  /** Time of submission on performance.now's clock. */
  submittedMs: number;
  /** Number of prompt tokens; maxNewTokens: the most that the request may generate. */
  promptLength: number;
  maxNewTokens: number;
  pieces: { readonly generatedTokens: number; readonly cachedTokens: number };
}

const COUNTS = 10;
const NUMBERS_PER_STEP = 6;
const QUEUED = 0;

/**
 * Makes formations: joins the engine's numbers of its requests with what the host knows of them, and adds those that
 * wait.
 */
export class FormationWriter {
  readonly #engine: { numBlocks: number; tokensPerBlock: number };
  /** Requests that ended since the last formation, with times on performance.now's clock. */
  #ended: FormationEnd[] = [];
  #isFirst = true;

  /** @param engine sizes that may be filled in later, before the first formation */
  constructor(engine: { numBlocks: number; tokensPerBlock: number }) {
    this.#engine = engine;
  }

  /** Notes that a request has ended. Beyond a limit the oldest are forgotten. */
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
    const queued = queue.list(MAX_QUEUED_ROWS);
    const waiting = queued.map((entry): FormationRow => {
      const { request, label, promptLength, maxNewTokens } = entry;
      const lengths = [promptLength, promptLength, 0, 0, maxNewTokens, 0, 0, 0, -1, -1];
      return [Number(request.requestId), label, QUEUED, ageOf(entry), ...lengths];
    });
    const listed = [...Array.from(engine.requestIds, (requestId) => entries.get(requestId)), ...queued];
    const adapters = listed.flatMap((entry): FormationAdapter[] =>
      entry?.adapterName == null ? [] : [[Number(entry.request.requestId), entry.adapterName]],
    );
    const ended = this.#ended.map((end): FormationEnd => end.with(3, tenths(end[3] - nowMs)) as FormationEnd);
    this.#ended = [];
    const { totals, longestIterationMs, latency } = engine.record;
    const steps = stepsOf(engine.record.steps, performance.timeOrigin + nowMs);
    // A new watcher has not seen the end of earlier requests.
    const ids = this.#isFirst ? new Set(running.map(([id]) => id)) : null;
    this.#isFirst = false;
    const { numBlocks: count, tokensPerBlock } = this.#engine;
    return {
      v: 1,
      timeMs: Date.now(),
      iteration: engine.iteration,
      requests: [...running, ...waiting],
      ...(adapters.length === 0 ? {} : { adapters }),
      queued: queue.size,
      ended,
      steps: ids === null ? steps : steps.filter(([id]) => ids.has(id)),
      totals: { ...totals, iterationMs: tenths(totals.iterationMs), executorMs: tenths(totals.executorMs) },
      longestIterationMs: tenths(longestIterationMs),
      latency,
      blocks: { count, tokensPerBlock, runs: Array.from(engine.blockRuns) },
      ...(engine.stateSlots !== null && { stateSlots: engine.stateSlots }),
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

/** Rounds milliseconds to tenths, as fine as a picture can show. */
function tenths(ms: number): number {
  return Math.round(10 * ms) / 10;
}
