/** Stands in for a piece of text when a shape is tried; no escape, and no answer has it. */
const PROBE = 'skein-probe-5f1d';
/** Events that are looked at before a stream is taken for one whose events have nothing in common. */
const MOST_TRIES = 3;

/**
 * The text of an event without parsing it, exactly as parsing it would give it. Most events of a stream are one JSON text
 * with another piece each, so: `prefix`, the piece as a JSON string's content, `suffix`. Where a piece of that form has
 * been proved to come out as the event's whole meaning, so does every other string content in that place.
 */
export class RepeatedEvent {
  #prefix = '';
  #suffix = '';
  #tries = 0;
  readonly #meaning: (data: string) => string | null;

  /** `meaning` is the text of an event that means a text and nothing else; null for any other. */
  constructor(meaning: (data: string) => string | null) {
    this.#meaning = meaning;
  }

  /** Another stream begins. It may have the same form: what was proved is so for any event. */
  beginStream(): void {
    this.#tries = 0;
  }

  /** Length of the text of this event; -1 where it has to be parsed. */
  textLength(data: string): number {
    const start = this.#prefix.length;
    const end = data.length - this.#suffix.length;
    if (start === 0 || end <= start || !data.endsWith(this.#suffix) || !data.startsWith(this.#prefix))
      return -1;
    // Most pieces are a word, so this is shorter than two searches. Quotes end a string, backslashes begin an escape,
    // and control characters must not be there.
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

  /** Takes the shape of this event, which had to be parsed and meant `text`, for those to come. */
  learn(data: string, text: string): void {
    if (this.#tries >= MOST_TRIES) return;
    this.#tries++;
    const content = JSON.stringify(text).slice(1, -1);
    const quoted = `"${content}"`;
    for (let at = data.indexOf(quoted); at >= 0; at = data.indexOf(quoted, at + 1)) {
      const prefix = data.slice(0, at + 1);
      const suffix = data.slice(at + 1 + content.length);
      if (this.#meaning(prefix + PROBE + suffix) !== PROBE) continue;
      // Flat strings of their own: slices would keep the text they are of, and compare slower.
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
