import {
  type EngineFormation,
  type Formation,
  type FormationRow,
  MAX_ENDED,
  MAX_QUEUED_ROWS,
} from './formation.js';

/** What of a request in the host is told. */
interface Followed {
  request: { requestId: bigint };
  label: string;
  /** On performance.now's clock. */
  submittedMs: number;
  /** Tokens of its prompt, and those that it may generate at most. */
  promptLength: number;
  maxNewTokens: number;
}

const COUNTS = 8;
const QUEUED = 0;

/** Puts what the engine tells of its requests together with what the host knows of them, and of those that wait. */
export class FormationWriter {
  readonly #engine: { numBlocks: number; tokensPerBlock: number };
  #ended: Formation['ended'] = [];

  /** `engine` may be filled in later, before the first formation. */
  constructor(engine: { numBlocks: number; tokensPerBlock: number }) {
    this.#engine = engine;
  }

  /** A request has ended. Of too many the oldest are forgotten. */
  noteEnd({ request, label }: Followed, reason: string): void {
    this.#ended.push([Number(request.requestId), label, reason]);
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
      const lengths = [promptLength, promptLength, 0, 0, maxNewTokens, 0, 0, 0];
      return [Number(request.requestId), label, QUEUED, ageOf(entry), ...lengths];
    });
    const ended = this.#ended;
    this.#ended = [];
    const { numBlocks: count, tokensPerBlock } = this.#engine;
    return {
      v: 1,
      timeMs: Date.now(),
      iteration: engine.iteration,
      requests: [...running, ...waiting],
      queued: queue.size,
      ended,
      blocks: { count, tokensPerBlock, runs: Array.from(engine.blockRuns) },
    };
  }
}
