import type { BadLine, BatchRequest } from './batch-line.js';

/** The custom_ids of the lines so far. */
export class SeenIds {
  readonly #seen = new Set<string>();

  /** The request, or what is wrong with it where a line before it has its custom_id. */
  checked(read: BatchRequest | BadLine, line: number): BatchRequest | BadLine {
    if ('message' in read) return read;
    const { customId } = read;
    if (!this.#seen.has(customId)) {
      this.#seen.add(customId);
      return read;
    }
    const message = `Line ${line} has the custom_id ${JSON.stringify(customId)} of a line before it; each needs its own.`;
    return { line, customId, code: 'duplicate_custom_id', message };
  }
}
