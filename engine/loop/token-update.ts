import { ROW_OK, type SamplingOutput } from '../decoding/sampling-batch.js';
import type { IterationPlanner } from '../iteration-planner.js';
import type { LlmRequest } from '../llm-request.js';
import type { EndedCall } from './iteration.js';

/** After a call: ends chunks, appends what was drawn, and evaluates the stop conditions. */
export class TokenUpdate {
  readonly #planner: IterationPlanner;
  readonly #clock: () => number;

  constructor(planner: IterationPlanner, clock: () => number) {
    this.#planner = planner;
    this.#clock = clock;
  }

  /** null: no call has ended. */
  apply(ended: EndedCall | null): void {
    if (ended === null || ended.output === null) return;
    const { chunks, iteration, output } = ended;
    let firstRow = 0;
    const nowMs = this.#clock();
    for (const { request } of chunks) {
      if (request.error !== '') continue;
      const numRows = request.rows.length;
      const wasContext = request.phase === 'context';
      if (wasContext) request.finishChunk();
      if (numRows === 0) continue;
      if (areFinite(output, firstRow, numRows)) {
        this.#append(request, { output, firstRow, wasContext }, nowMs);
        iteration.counts.generatedTokens += numRows;
      } else {
        request.error = `The logits for token ${request.numTokens} of this request are not finite (NaN or all -infinity).`;
      }
      firstRow += numRows;
    }
  }

  #append(
    request: LlmRequest,
    drawn: { output: SamplingOutput; firstRow: number; wasContext: boolean },
    nowMs: number,
  ): void {
    const { output, firstRow, wasContext } = drawn;
    request.numVerified = request.numTokens;
    if (wasContext) this.#planner.keep(request);
    const { newTokens, parents } = request.append(output, firstRow, wasContext);
    if (newTokens > 0) request.timing.noteToken(nowMs);
    if (parents !== null) this.#planner.fork(request, parents);
  }
}

function areFinite({ status }: SamplingOutput, first: number, count: number): boolean {
  for (let row = first; row < first + count; row++) if (status[row] !== ROW_OK) return false;
  return true;
}
