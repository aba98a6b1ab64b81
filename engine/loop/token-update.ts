import { ROW_OK } from '../decoding/sampling-batch.js';
import type { IterationPlanner } from '../iteration-planner.js';
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
    let row = 0;
    const nowMs = this.#clock();
    for (const { request } of chunks) {
      if (request.error !== '') continue;
      const { drawsToken } = request;
      const wasContext = request.phase === 'context';
      if (wasContext) request.finishChunk();
      if (!drawsToken) continue;
      if (output.status[row] === ROW_OK) {
        request.numVerified = request.numTokens;
        if (wasContext) this.#planner.keep(request);
        const known = request.numGenerated;
        request.append(output, row);
        if (request.numGenerated > known) request.timing.noteToken(nowMs);
        iteration.counts.generatedTokens++;
      } else {
        request.error = `The logits for token ${request.numTokens} of this request are not finite (NaN or all -infinity).`;
      }
      row++;
    }
  }
}
