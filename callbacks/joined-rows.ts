import { setImmediate as nextTurn } from 'node:timers/promises';

/** Numbers that are copied in one turn: some milliseconds, most of them for pages of memory that are new. */
const NUMBERS_OF_TURN = 2 ** 20;

/**
 * Rows of a request in one array, whose memory goes to the engine with them: a large picture has 64 MiB, which the host's thread would
 * otherwise copy twice, and the engine's loop once.
 */
export class JoinedRows {
  #values: Float32Array<ArrayBuffer> | null;

  private constructor(values: Float32Array<ArrayBuffer>) {
    this.#values = values;
  }

  /** Copies rows. The caller's thread has other turns in between. */
  static async of(rows: readonly Float32Array[]): Promise<JoinedRows> {
    const values = new Float32Array(rows.reduce((sum, { length }) => sum + length, 0));
    let [end, begun] = [0, 0];
    for (const row of rows) {
      if (end + row.length - begun > NUMBERS_OF_TURN && end > begun) {
        begun = end;
        await nextTurn();
      }
      values.set(row, end);
      end += row.length;
    }
    return new JoinedRows(values);
  }

  /** The array, for the one who asks first; null: it has gone. */
  take(): Float32Array<ArrayBuffer> | null {
    const values = this.#values;
    this.#values = null;
    return values;
  }
}
