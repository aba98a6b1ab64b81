import type { NamedTensor, TensorData } from 'skein';

/** Tensors of which each response has its own part; of all others the last one counts. */
const PARTS: ReadonlySet<string> = new Set([
  'output_ids',
  'output_log_probs',
  'top_token_ids',
  'top_log_probs',
  'generation_logits',
]);
/** Outputs that depend on the crowd, and may. */
const OF_THE_MOMENT: ReadonlySet<string> = new Set([
  'request_times_ms',
  'num_iterations',
  'cached_tokens',
  'finish_reasons',
  'reused_blocks',
  'missed_blocks',
  'num_pauses',
]);
const LOGITS: ReadonlySet<string> = new Set(['context_logits', 'generation_logits']);

/** finish_reasons from which on it was ended from outside: by its time limit, or cancelled. */
const FINISH_TIMED_OUT = 4;

/** Everything that was said to one request, put together; of several sequences each by itself. */
export class Answer {
  error = '';
  isFinal = false;
  finishReason = 0;
  readonly #data = new Map<string, TensorData[]>();

  /** @throws Error for a response after the final one. */
  add(outputs: readonly NamedTensor[], final: boolean, error: string): void {
    if (this.isFinal) throw new Error('a response came after the final one');
    this.isFinal = final;
    this.error = error;
    const sequence = outputs.find(({ name }) => name === 'sequence_index')?.data[0];
    for (const { name: ofAll, data } of outputs) {
      const name = sequence === undefined ? ofAll : `${ofAll} ${sequence}`;
      if (ofAll === 'finish_reasons') this.#noteReasons(Array.from(data as Int32Array, Number));
      if (OF_THE_MOMENT.has(ofAll) || (LOGITS.has(ofAll) && data.length === 1)) continue;
      const parts = PARTS.has(ofAll) ? (this.#data.get(name) ?? []) : [];
      this.#data.set(name, [...parts, data]);
    }
  }

  /** Notes the finish reason: a single sequence that was cut short says it for all, as the others may have ended before. */
  #noteReasons(reasons: readonly number[]): void {
    const cutShort = reasons.find((reason) => reason >= FINISH_TIMED_OUT);
    if (cutShort !== undefined) this.finishReason = cutShort;
    else if (this.finishReason < FINISH_TIMED_OUT) this.finishReason = reasons[0] ?? 0;
  }

  get sequenceLength(): number {
    return Number(this.#data.get('sequence_length')?.[0]?.[0] ?? 0);
  }

  /** Numbers of a tensor over all responses; with `streaming` false output_ids begins with the prompt. */
  numbers(name: string): number[] {
    return (this.#data.get(name) ?? []).flatMap((part) => Array.from(part as Int32Array, Number));
  }

  /** Why this answer, cut short or not, is not the beginning of `whole`, or, where both ended by themselves, not it. */
  differenceFrom(whole: Answer, isCutShort: boolean): string | null {
    for (const name of new Set([...this.#data.keys(), ...whole.#data.keys()])) {
      const [mine, theirs] = [bytesOf(this.#data.get(name)), bytesOf(whole.#data.get(name))];
      if (isCutShort ? PARTS.has(name.split(' ')[0]!) && !isBeginning(mine, theirs) : !mine.equals(theirs)) {
        return `${name}: ${this.numbers(name).slice(0, 40)} where alone it is ${whole.numbers(name).slice(0, 40)}`;
      }
    }
    return null;
  }
}

function bytesOf(parts: readonly TensorData[] = []): Buffer {
  return Buffer.concat(parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength)));
}

function isBeginning(part: Buffer, whole: Buffer): boolean {
  return part.length <= whole.length && part.equals(whole.subarray(0, part.length));
}
