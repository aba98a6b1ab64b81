/**
 * Times of a request's events, in milliseconds on the loop's clock; NaN for an event that has not happened.
 *
 *   arrival ---- queue ----> first scheduled ---- context ----> first token ---- generation ----> last token
 */
export class RequestTiming {
  readonly arrivalMs: number;
  firstScheduledMs = Number.NaN;
  /** End of the latest step that computed a part of the context. */
  lastContextMs = Number.NaN;
  firstTokenMs = Number.NaN;
  lastTokenMs = Number.NaN;
  /** Number of iterations in which the request ran; those after a pause count too. */
  numIterations = 0;

  constructor(arrivalMs: number) {
    this.arrivalMs = arrivalMs;
  }

  noteScheduled(nowMs: number): void {
    if (this.numIterations === 0) this.firstScheduledMs = nowMs;
    this.numIterations++;
  }

  /** Notes the time of a token that was not known before. */
  noteToken(nowMs: number): void {
    if (Number.isNaN(this.firstTokenMs)) this.firstTokenMs = nowMs;
    this.lastTokenMs = nowMs;
  }
}
