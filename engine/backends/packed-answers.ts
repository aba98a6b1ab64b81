import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { PackedAnswers, PackedResponse, PackedTensor } from '../../callbacks/infer/instance-messages.js';

const ALIGNMENT = 8;

/** Collects the answers of a batch as its worker gives them, for one message: outputs are copied one behind the other. */
export class AnswerWriter {
  #bytes = new Uint8Array(0);
  #end = 0;
  #responses: PackedResponse[] = [];
  #ended: number[] = [];
  #failed: [number, string][] = [];

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

  /** What was collected since the last time. Its bytes fill their buffer, which may be handed over. */
  take(): PackedAnswers & { bytes: Uint8Array<ArrayBuffer> } {
    const bytes = this.#end === this.#bytes.length ? this.#bytes : this.#bytes.slice(0, this.#end);
    const answers = { bytes, responses: this.#responses, ended: this.#ended, failed: this.#failed };
    this.#bytes = new Uint8Array(0);
    this.#end = 0;
    this.#responses = [];
    this.#ended = [];
    this.#failed = [];
    return answers;
  }

  #makeRoom(bytes: number): void {
    const needed = this.#end + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#end === 0 ? needed : 2 * this.#bytes.length, 0));
    grown.set(this.#bytes.subarray(0, this.#end));
    this.#bytes = grown;
  }
}

const aligned = (length: number) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;
