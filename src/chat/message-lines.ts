const FENCE = '"""';

/**
 * Makes messages of lines. Three quotes begin and end a message of several lines, a backslash at the end of a
 * line continues it on the next one, and pasted lines are one message until a line is typed after them.
 */
export class MessageLines {
  #lines: string[] = [];
  #isFenced = false;

  /** True where a message was begun that further lines belong to. */
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

  /** Takes the lines so far as a message; no message is open after that. */
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
    // Quotes alone in a line add no line to the message.
    if (text !== '' || !(isFirst || end)) this.#lines.push(text);
    return end ? this.take() : null;
  }
}
