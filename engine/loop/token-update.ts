import { ROW_NO_TOKEN_LEFT, ROW_OK, type SamplingOutput } from '../decoding/sampling-batch.js';
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
    const { chunks, iteration, output, failures } = ended;
    let firstRow = 0;
    const nowMs = this.#clock();
    for (const { request } of chunks) {
      if (request.error !== '') continue;
      const numRows = request.rows.length;
      const wasContext = request.phase === 'context';
      if (wasContext) request.finishChunk();
      if (numRows === 0) continue;
      const failure = failures.get(request);
      const status = firstFailure(output, firstRow, numRows);
      if (failure !== undefined) {
        request.error = failure;
      } else if (status === ROW_OK) {
        this.#append(request, { output, firstRow, wasContext }, nowMs);
        iteration.counts.generatedTokens += numRows;
      } else {
        request.error = whyNoToken(status, request);
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

function firstFailure({ status }: SamplingOutput, first: number, count: number): number {
  for (let row = first; row < first + count; row++) if (status[row] !== ROW_OK) return status[row]!;
  return ROW_OK;
}

function whyNoToken(status: number, { numTokens, spec: { postProcessor } }: LlmRequest): string {
  if (status === ROW_NO_TOKEN_LEFT) {
    return `The biases and bans of this request leave no token that could be drawn as token ${numTokens}.`;
  }
  const after = postProcessor === null ? '' : ` after the logits post-processor ${postProcessor}`;
  return `The logits for token ${numTokens} of this request are not finite${after} (NaN or all -infinity).`;
}
