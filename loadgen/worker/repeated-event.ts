/** Stands in for a piece of text when a shape is tried. It needs no escape, and no answer contains it. */
const PROBE = 'skein-probe-5f1d';
/** Number of events tried before a stream counts as one whose events have nothing in common. */
const MAX_TRIES = 3;

/**
 * Reads the text of an event without parsing it, exactly as parsing would. Most events of a stream are one JSON text
 * with another piece each: `prefix`, the piece as a JSON string's content, `suffix`. Once one piece in that place has
 * been proved to be the event's whole meaning, so is every other string content there.
 */
export class RepeatedEvent {
  #prefix = '';
  #suffix = '';
  #tries = 0;
  readonly #meaning: (data: string) => string | null;

  /** @param meaning returns the text of an event that holds only a text; null for any other */
  constructor(meaning: (data: string) => string | null) {
    this.#meaning = meaning;
  }

  /** Begins another stream. It may use the same shape: the proof holds for any event. */
  beginStream(): void {
    this.#tries = 0;
  }

  /** Length of an event's text; -1 where the event must be parsed. */
  textLength(data: string): number {
    const start = this.#prefix.length;
    const end = data.length - this.#suffix.length;
    if (start === 0 || end <= start || !data.endsWith(this.#suffix) || !data.startsWith(this.#prefix))
      return -1;
    // Most pieces are a word, so this is shorter than two searches. Quotes end a string, backslashes begin an escape,
    // and control characters are not allowed.
    for (let i = start; i < end; i++) {
      const code = data.charCodeAt(i);
      if (code === 34 || code === 92 || code < 32) return -1;
    }
    return end - start;
  }

  /** The text that textLength measured. */
  text(data: string): string {
    return data.slice(this.#prefix.length, data.length - this.#suffix.length);
  }

  /** Learns the shape of an event that had to be parsed and meant `text`, for later events. */
  learn(data: string, text: string): void {
    if (this.#tries >= MAX_TRIES) return;
    this.#tries++;
    const content = JSON.stringify(text).slice(1, -1);
    const quoted = `"${content}"`;
    for (let at = data.indexOf(quoted); at >= 0; at = data.indexOf(quoted, at + 1)) {
      const prefix = data.slice(0, at + 1);
      const suffix = data.slice(at + 1 + content.length);
      if (this.#meaning(prefix + PROBE + suffix) !== PROBE) continue;
      // Flat strings: slices would keep their whole text alive, and compare slower.
      this.#prefix = flat(prefix);
      this.#suffix = flat(suffix);
      this.#tries = 0;
      return;
    }
  }
}

function flat(text: string): string {
  return Buffer.from(text).toString();
}
