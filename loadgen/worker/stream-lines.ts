/**
 * The text of an event stream as the parser takes it: without a byte order mark, and with LF at the end of each line, where the
 * stream may have CR or CR LF too. A CR that is the last character so far has ended its line, so that an event is told when
 * it is complete; an LF that follows it belongs to it.
 */
export class StreamLines {
  #isFirst = true;
  #endsWithCr = false;
  #isWithinLine = false;

  /** The last line has no end yet. */
  get isWithinLine(): boolean {
    return this.#isWithinLine;
  }

  reset(): void {
    this.#isFirst = true;
    this.#endsWithCr = false;
    this.#isWithinLine = false;
  }

  /** `text` is not empty; what is returned may be. */
  take(text: string): string {
    let from = 0;
    if (this.#isFirst && text.charCodeAt(0) === 0xfeff) from = 1;
    else if (this.#endsWithCr && text.charCodeAt(0) === 10) from = 1;
    this.#isFirst = false;
    const own = from === 0 ? text : text.slice(from);
    // Behind a CR of its own, an LF has been dropped for good.
    this.#endsWithCr = own.endsWith('\r');
    if (own === '') return '';
    const lines = own.includes('\r') ? own.replace(/\r\n?/g, '\n') : own;
    this.#isWithinLine = !lines.endsWith('\n');
    return lines;
  }
}
