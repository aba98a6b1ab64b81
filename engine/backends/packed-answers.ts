import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { PackedAnswers, PackedResponse, PackedTensor } from '../../callbacks/infer/instance-messages.js';

const ALIGNMENT = 8;

/**
 * Collects the answers of a batch as its worker gives them, for one message: outputs are copied one after the
 * other.
 */
export class AnswerWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  /** The bytes are in memory that the host wants back. */
  #isLent: boolean;
  #end = 0;
  #responses: PackedResponse[] = [];
  #ended: number[] = [];
  #failed: [number, string][] = [];

  /** @param lent memory for what is collected until it is taken for the first time, if it is large enough; null: none */
  constructor(lent: ArrayBuffer | null = null) {
    this.#bytes = new Uint8Array(lent ?? new ArrayBuffer(0));
    this.#isLent = lent !== null;
  }

  respond(request: number, outputs: readonly InferTensor[], parameters: InferParameters | null): void {
    this.#makeRoom(outputs.reduce((sum, { data }) => sum + aligned(data.length), 0));
    const packed = outputs.map(({ name, datatype, shape, data }): PackedTensor => {
      const offset = this.#end;
      this.#bytes.set(data, offset);
      this.#end += aligned(data.length);
      return { name, datatype, shape: [...shape], offset, length: data.length };
    });
    this.#responses.push({ request, outputs: packed, parameters });
  }

  end(request: number): void {
    this.#ended.push(request);
  }

  fail(request: number, reason: string): void {
    this.#failed.push([request, reason]);
  }

  /** What was collected since the last time. Nothing else is in the buffer of its bytes, which may be handed over. */
  take(): PackedAnswers & { bytes: Uint8Array<ArrayBuffer> } {
    const isWhole = this.#isLent || 2 * this.#end >= this.#bytes.length;
    const bytes = isWhole ? this.#bytes.subarray(0, this.#end) : this.#bytes.slice(0, this.#end);
    const answers = { bytes, responses: this.#responses, ended: this.#ended, failed: this.#failed };
    this.#bytes = new Uint8Array(0);
    this.#isLent = false;
    this.#end = 0;
    this.#responses = [];
    this.#ended = [];
    this.#failed = [];
    return answers;
  }

  #makeRoom(bytes: number): void {
    const needed = this.#end + bytes;
    if (needed <= this.#bytes.length) return;
    // Bytes after `end` are never read, so they need not be zeroed.
    const grown = Buffer.allocUnsafeSlow(this.#end === 0 ? needed : Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#end));
    this.#bytes = new Uint8Array(grown.buffer);
    this.#isLent = false;
  }
}

const aligned = (length: number) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;
