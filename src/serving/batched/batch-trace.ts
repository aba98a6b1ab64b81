import type { BatchTimes } from '../../../callbacks/infer/instance-messages.js';
import type { TraceSpan } from '../../../callbacks/infer/trace-span.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';

/** What a batch's trace needs of a request in it. */
export interface TracedEntry {
  /** Of the request at this model; null: it is not traced. */
  readonly span: TraceSpan | null;
  readonly startMs: number;
  readonly batchSize: number;
}

const NS_PER_MS = 1e6;

/**
 * The trace of a batch that has a request which is traced. What the batch's code asks of other models belongs to the batch, or to the request
 * for which it asks; the batch belongs to its first request, and is linked with all of them:
 *
 *   a:  infer M  |-- queue --|-- compute ----------------------|
 *                            '-- batch M ----------------------|  --> infer of another model
 *   b:  infer M      |-queue-|-- compute ------------- (linked)|
 *                            |-- input --|-- infer --|- output-|
 */
export class BatchTrace {
  readonly #computes: readonly (TraceSpan | null)[];
  readonly #batch: TraceSpan;
  readonly #beganMs: number;
  #isOver = false;

  private constructor(computes: readonly (TraceSpan | null)[], batch: TraceSpan, beganMs: number) {
    this.#computes = computes;
    this.#batch = batch;
    this.#beganMs = beganMs;
  }

  /** null: none of its requests is traced. */
  static begin(
    { name }: Pick<ModelConfig, 'name'>,
    entries: readonly TracedEntry[],
    beganMs: number,
  ): BatchTrace | null {
    if (entries.every(({ span }) => span === null)) return null;
    const computes = entries.map(({ span, startMs }) => {
      if (span === null) return null;
      span.child('queue', startMs).end(beganMs);
      return span.child('compute', beganMs);
    });
    const traced = computes.filter((span) => span !== null);
    const rows = entries.reduce((sum, { batchSize }) => sum + batchSize, 0);
    const attributes = { 'skein.batch.requests': entries.length, 'skein.batch.rows': rows };
    const batch = traced[0]!.child(`batch ${name}`, beganMs, attributes, traced);
    return new BatchTrace(computes, batch, beganMs);
  }

  /** Below which a call of the batch's code is recorded. @param request its number in the batch; undefined: it names none */
  parentOf(request: number | undefined): TraceSpan {
    return (request === undefined ? null : this.#computes[request]) ?? this.#batch;
  }

  /** The batch is done. @param times null: it was lost, or given up */
  end(times: BatchTimes | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const endMs = performance.now();
    for (const compute of this.#computes) {
      if (compute === null) continue;
      if (times === null) compute.fail('the batch was not finished');
      else this.#setParts(compute, times);
      compute.end(endMs);
    }
    if (times === null) this.#batch.fail('it was not finished');
    this.#batch.end(endMs);
  }

  /** Consecutive parts, as long as the instance reports. */
  #setParts(compute: TraceSpan, { inputNs, inferNs, outputNs }: BatchTimes): void {
    let atMs = this.#beganMs;
    for (const [name, ns] of [
      ['compute input', inputNs],
      ['compute infer', inferNs],
      ['compute output', outputNs],
    ] as const) {
      const endMs = atMs + ns / NS_PER_MS;
      compute.child(name, atMs).end(endMs);
      atMs = endMs;
    }
  }
}
