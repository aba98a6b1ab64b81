/**
 * Converts an event stream to the form that the parser takes: without a byte order mark, and with LF at the end of each
 * line, where the stream may have CR or CR LF too. A CR at the end of the text so far ends its line, so that an event
 * is reported when it is complete; an LF that follows belongs to it.
 */
export class StreamLines {
  #isFirst = true;
  #endsWithCr = false;
  #isWithinLine = false;

  /** True where the last line has no end yet. */
  get isWithinLine(): boolean {
    return this.#isWithinLine;
  }

  reset(): void {
    this.#isFirst = true;
    this.#endsWithCr = false;
    this.#isWithinLine = false;
  }

  /** Takes a text, which must not be empty; the result may be empty. */
  take(text: string): string {
    let from = 0;
    if (this.#isFirst && text.charCodeAt(0) === 0xfeff) from = 1;
    else if (this.#endsWithCr && text.charCodeAt(0) === 10) from = 1;
    this.#isFirst = false;
    const own = from === 0 ? text : text.slice(from);
    // An LF after such a CR has been dropped for good.
    this.#endsWithCr = own.endsWith('\r');
    if (own === '') return '';
    const lines = own.includes('\r') ? own.replace(/\r\n?/g, '\n') : own;
    this.#isWithinLine = !lines.endsWith('\n');
    return lines;
  }
}
