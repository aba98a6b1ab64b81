/** Bytes of all parts. */
export function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** Characters of an answer that are gathered before they become bytes. */
const PIECE = 2 ** 16;

/** The JSON of an answer, of which no more than a piece is text at a time. */
export class JsonText {
  readonly #parts: Uint8Array[] = [];
  readonly #hold: (bytes: number) => void;
  #text = '';

  constructor(hold: (bytes: number) => void) {
    this.#hold = hold;
  }

  /** True: it was long enough for others to have their turn. */
  add(text: string): boolean {
    this.#text += text;
    if (this.#text.length < PIECE) return false;
    this.#flush();
    return true;
  }

  #flush(): void {
    const part = Buffer.from(this.#text);
    this.#hold(part.length);
    this.#parts.push(part);
    this.#text = '';
  }

  /** All of it; a short one stays a text. */
  content(): string | readonly Uint8Array[] {
    return this.#parts.length === 0 ? this.#text : this.parts();
  }

  parts(): readonly Uint8Array[] {
    this.#flush();
    return this.#parts;
  }
}
