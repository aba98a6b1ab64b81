const FENCE = '"""';

/**
 * Makes messages of lines. Three quotes begin a message of several lines and end it, a backslash at the end of a line goes
 * on with the next, and lines that were pasted are one message until a line is typed behind them.
 */
export class MessageLines {
  #lines: string[] = [];
  #isFenced = false;

  /** Something was begun that further lines belong to. */
  get isOpen(): boolean {
    return this.#lines.length > 0 || this.#isFenced;
  }

  /** Takes a line; returns the message that it ends, or null. */
  add(line: string, { isPasted = false } = {}): string | null {
    if (this.#isFenced) return this.#addFenced(line);
    if (this.#lines.length === 0 && line.trimStart().startsWith(FENCE)) {
      this.#isFenced = true;
      return this.#addFenced(line.trimStart().slice(FENCE.length), true);
    }
    const goesOn = /(?<!\\)(\\\\)*\\$/.test(line);
    this.#lines.push(goesOn ? line.slice(0, -1) : line);
    return goesOn || isPasted ? null : this.take();
  }

  /** What has come so far, as a message; nothing is open behind it. */
  take(): string {
    const message = this.#lines.join('\n');
    this.clear();
    return message;
  }

  clear(): void {
    this.#lines = [];
    this.#isFenced = false;
  }

  #addFenced(line: string, isFirst = false): string | null {
    const end = line.trimEnd().endsWith(FENCE);
    const text = end ? line.trimEnd().slice(0, -FENCE.length) : line;
    // Quotes that stand alone in their line add none.
    if (text !== '' || !(isFirst || end)) this.#lines.push(text);
    return end ? this.take() : null;
  }
}
